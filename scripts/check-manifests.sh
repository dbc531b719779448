#!/usr/bin/env bash
# Checks docs/kubernetes against the API's own schemas, which are large: they stay out of the virtual environment.
set -euo pipefail

VALIDATE=1.37.0 # kubernetes-validate; it has the schemas of each Kubernetes up to this one
tools=${ORTIMG_TOOLS:-$HOME/.cache/ortimg-tools}
program=$tools/kubernetes/bin/kubernetes-validate

if [[ ! -x $program ]]; then
    python3 -m venv --clear "$tools/kubernetes"
    "$tools/kubernetes/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$VALIDATE"
fi
cd "$(dirname "$0")/.."
for version in 1.29 1.34; do
    "$program" --strict -k "$version" docs/kubernetes/*.yaml
done
