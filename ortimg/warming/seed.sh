#!/bin/sh
# Entrypoint of a warmed image: puts a copy of CUDA's compute cache where the container may write, and starts the
# program with that one. CUDA looks into one place only (CUDA_CACHE_PATH), and the cache of the image cannot be written
# to: it cannot grow, and not every driver uses it like that. Works as any user, with a read-only root and without
# HOME: where nothing can be written, the program gets the cache of the image, and this says what that means.
#
# A place of your own, which stays: `-v warm:/cache -e CUDA_CACHE_PATH=/cache`; the copy is a folder in it.
set -u

baked=/usr/share/ortimg/warm/cache
say() { echo "ortimg-seed: $1" >&2; }

# seed FOLDER: sets `place` to a copy in FOLDER, made now or by an earlier start. Another image's copy has another
# name, and one that somebody else made is not touched. A copy is whole or not there.
seed() {
    [ -n "$1" ] && [ -d "$1" ] && [ -w "$1" ] && [ -x "$1" ] || return 1
    place=$1/$name
    [ ! -d "$place" ] || [ -L "$place" ] || [ ! -O "$place" ] || return 0
    new=$(mktemp -d "$1/$name.XXXXXX" 2>/dev/null) || return 1
    if cp -R "$baked/." "$new/" 2>/dev/null && chmod -R u+rwX "$new"; then
        mv -T "$new" "$place" 2>/dev/null || place=$new # another start was quicker
        return 0
    fi
    rm -rf "$new" # there was not enough room
    return 1
}

choose() {
    name=ortimg-cuda-cache-$(id -u)-$(cksum <"${baked%/*}/warm.json" | cut -d ' ' -f 1)
    wish=${CUDA_CACHE_PATH:-}
    [ "$wish" != "$baked" ] || wish=''
    [ -z "$wish" ] || mkdir -p "$wish" 2>/dev/null
    for folder in "$wish" "${XDG_CACHE_HOME:-}" "${TMPDIR:-}" /tmp /var/tmp /dev/shm; do
        if seed "$folder"; then
            export CUDA_CACHE_PATH="$place"
            [ -z "$wish" ] || [ "$folder" = "$wish" ] || say "$wish has no room or cannot be written to: $folder"
            return
        fi
    done
    export CUDA_CACHE_PATH="$baked"
    # What the warm-up has shown of the driver, written by `ortimg warm`.
    if grep -q '"use": "read-only"' "${baked%/*}/warm.json"; then
        say "no place to write to: CUDA has the cache of the image, and compiles what it lacks at each start"
    else
        say "no place to write to: kernels will be compiled again at each start; mount a tmpfs on /tmp"
    fi
}

# Of a cache that is larger than this, kernels are thrown out, and compiled at each start.
make_room() {
    need=$(du -sk "$baked" 2>/dev/null | cut -f 1)
    limit=${CUDA_CACHE_MAXSIZE:-1073741824}
    case $limit$need in *[!0-9]*) return ;; esac
    if [ "$((limit / 1024))" -le "$need" ]; then
        export CUDA_CACHE_MAXSIZE=4294967296
        say "CUDA_CACHE_MAXSIZE was $limit, less than the cache of the image has: it is 4 GiB now"
    fi
}

if [ $# -eq 0 ]; then
    say "no program to start: give a command"
    exit 2
fi
if [ "${CUDA_CACHE_DISABLE:-0}" != 1 ]; then
    choose
    make_room
fi
exec "$@"
