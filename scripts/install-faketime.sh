#!/usr/bin/env bash
# The tests set the clock of a command back: install Debian's faketime where it is missing.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests need faketime, and it is not on PATH." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install faketime" >&2
    exit 3
fi
echo "installing faketime, for the tests" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends faketime >/dev/null
