#!/usr/bin/env bash
# Debian's and Ubuntu's python3 comes without the venv module's pip: install the package that has it.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: this Python has no ensurepip, so it cannot make a virtual environment." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install python3-venv" >&2
    exit 3
fi
echo "installing python3-venv" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
