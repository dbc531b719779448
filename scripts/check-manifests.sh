#!/usr/bin/env bash
# Checks manifests against the API's own schemas: check-manifests.sh [FILE…]; all of the repository's where none is
# named. The schemas are large: they stay out of the virtual environment.
set -euo pipefail

VALIDATE=1.37.0 # kubernetes-validate; it has the schemas of each Kubernetes up to this one
tools=${ORTIMG_TOOLS:-$HOME/.cache/ortimg-tools}
folder=$tools/kubernetes-$VALIDATE # another version is another folder, else the old schemas would stay in use
program=$folder/bin/kubernetes-validate

mkdir -p "$tools"
exec 9>"$tools/lock"
flock 9 # two at once would make one folder
if [[ ! -x $program ]]; then
    python3 -m venv --clear "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$VALIDATE"
fi
exec 9>&-
root=$(dirname "$0")/..
(($#)) || set -- "$root"/docs/kubernetes/*.yaml "$root"/examples/kubernetes/*.yaml
for version in 1.29 1.34; do
    "$program" --strict -k "$version" "$@"
done
