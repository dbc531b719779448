#!/usr/bin/env bash
# The tests push to a real registry on this machine: install Debian's docker-registry where it is missing.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: the tests need a registry, and there is no docker-registry on PATH." >&2
    echo "On Debian or Ubuntu run: sudo apt-get install docker-registry openssl" >&2
    exit 3
fi
echo "installing docker-registry and openssl, for the tests" >&2
# Only the program is wanted: https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker-registry openssl >/dev/null
