#!/usr/bin/env bash
# The tests make small libraries and programs with the system's C compiler: install it where it is missing.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests need a C compiler, and there is no cc on PATH." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install gcc libc6-dev" >&2
    exit 3
fi
echo "installing gcc and libc6-dev, for the tests" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
