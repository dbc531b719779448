#!/usr/bin/env bash
# The tests push to a real registry on this machine: install Debian's docker-registry where it is missing.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests need a registry, and there is no docker-registry on PATH." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install docker-registry" >&2
    exit 3
fi
echo "installing docker-registry, for the tests" >&2
apt-get update -qq
# Only the program is wanted: no service is started.
export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
apt-get install -y -qq --no-install-recommends docker-registry openssl >/dev/null
