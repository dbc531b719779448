#!/usr/bin/env bash
# What looks at the page of `ortimg report` and at the docs site: Debian's Chromium with a Chinese font, and checkers of
# accessibility and HTML from npm.
set -euo pipefail
cd "$(dirname "$0")/../tests/browser"
if ! command -v chromium >/dev/null && [[ -z ${CHROMIUM:-} ]]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "error: there is no chromium on PATH. On Debian run: sudo apt-get install chromium" >&2
        echo "Or set CHROMIUM to a browser of that kind." >&2
        exit 3
    fi
    echo "installing chromium (about 100 MB)" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-wqy-zenhei >/dev/null
fi
if ! command -v npm >/dev/null; then
    echo "error: there is no npm on PATH. Install Node.js 20 or newer." >&2
    exit 3
fi
# By the lock file, with its hashes; scripts of packages are not run.
npm ci --silent --no-audit --no-fund --ignore-scripts
