#!/usr/bin/env bash
# The tests let mandoc judge the man pages: install Debian's where it is missing.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests need mandoc, and it is not on PATH." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install mandoc" >&2
    exit 3
fi
echo "installing mandoc, for the tests" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mandoc >/dev/null
