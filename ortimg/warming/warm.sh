#!/bin/sh
# What `ortimg warm` runs where the GPU is: fills CUDA's compute cache, shows what it is worth, writes a record.
# It needs sh, coreutils and ort-verify (and unshare and mount for one of the starts, which is skipped without), so it
# also runs on a machine without Docker and Python:
#
#   sh warm.sh --verify ort-verify --root UNPACKED_ROOT --out FOLDER
#
# and `ortimg warm IMAGE --from FOLDER` makes the image elsewhere. Without --root it judges the system it is in.
#
# Each start is a process of its own. Two switches of CUDA make a proof that needs no stopwatch: with
# CUDA_DISABLE_PTX_JIT=1 the driver compiles nothing, so a model runs only if its kernels are there already.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars
#
# Exit: 0 done (or nothing to gain: FOLDER has no cache then), 1 a start failed, 2 wrong usage, 3 no GPU, 130.
set -eu

usage() {
    cat <<'TEXT'
Usage: warm.sh --verify FILE --out FOLDER [--root DIR] [--starts N] [--cold-starts N] [--timeout SECONDS] [--force]
               [--stub FILE] [--read-only-out DIR] [--model FILE] [--shape NAME=1x3x8x8]... [--option KEY=VALUE]... [--allow-cpu OP]...
  --starts N       starts with a full cache, of each kind (default 3)
  --cold-starts N  starts with an empty cache (default 1); each compiles everything
  --force          go on where the GPU needs no cache
  --read-only-out  the folder of --out once more, by a mount that is read-only (for a container, which cannot mount)
  --model ...      your own model, as for ort-verify --tier run; the model of ort-verify is added to the cache too
TEXT
}
wrong() {
    echo "warm: $1" >&2
    echo "warm.sh --help shows the options." >&2
    exit 2
}
say() { echo "warm: $1" >&2; }

verify='' root='' out='' stub='' seen='' starts=3 cold_starts=1 timeout=600 force=no own=no
left=$#
while [ "$left" -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    case $word in
    --help | -h)
        usage
        exit 0
        ;;
    --force)
        force=yes
        continue
        ;;
    --*=*)
        value=${word#*=}
        word=${word%%=*}
        ;;
    *)
        [ "$left" -gt 0 ] || wrong "$word needs a value, or is no option"
        value=$1
        shift
        left=$((left - 1))
        ;;
    esac
    case $word in
    --verify) verify=$value ;;
    --root) root=$value ;;
    --out) out=$value ;;
    --stub) stub=$value ;;
    --read-only-out) seen=$value ;;
    --starts) starts=$value ;;
    --cold-starts) cold_starts=$value ;;
    --timeout) timeout=$value ;;
    --model)
        own=yes
        set -- "$@" --model "$value"
        ;;
    --shape | --option | --allow-cpu) set -- "$@" "$word" "$value" ;; # what is left in "$@" goes to ort-verify
    *) wrong "unknown option $word" ;;
    esac
done
for number in "$starts" "$cold_starts" "$timeout"; do
    case $number in '' | 0* | *[!0-9]*) wrong "\"$number\": whole numbers from 1 on" ;; esac
done
[ -x "$verify" ] || wrong "--verify \"$verify\": no program there"
[ -n "$out" ] || wrong "--out is missing"
[ -z "$root" ] || [ -d "$root/usr" ] || wrong "--root $root: no unpacked root, it has no folder usr"
[ -z "$seen" ] || [ -d "$seen" ] || wrong "--read-only-out $seen: no folder there"
[ ! -e "$out/warm.json" ] && [ ! -e "$out/cache" ] || wrong "$out holds a record already: name another folder"
[ -n "$stub" ] || [ ! -f "$(dirname "$verify")/libcuda.so.1" ] || stub=$(dirname "$verify")/libcuda.so.1

# Both sides of the caches: where we see them, and where the program does.
refused() {
    say "$1 cannot be written to, or the disk is full"
    exit 3
}
mkdir -p "$out" || refused "$out"
out=$(cd "$out" && pwd)
work=$out/.work
if [ -n "$root" ]; then
    root=$(cd "$root" && pwd)
    caches=$root/ortimg-warm.$$ inside=/ortimg-warm.$$
else
    caches=$work/caches inside=$work/caches
fi
clean() {
    chmod -R u+w "$caches" "$work" 2>/dev/null || true
    rm -rf "$caches" "$work"
}
trap clean EXIT
trap 'exit 130' HUP INT TERM
mkdir "$work" || refused "$out"
mkdir "$caches" || refused "${root:-$out}"

# The user's own settings of the cache would disturb.
unset CUDA_CACHE_DISABLE CUDA_CACHE_PATH CUDA_DISABLE_PTX_JIT CUDA_FORCE_PTX_JIT CUDA_DISABLE_JIT CUDA_FORCE_JIT
# Kernels that do not fit in are thrown out again, oldest first. Older drivers read no more than 31 bits here.
CUDA_CACHE_MAXSIZE=2147483647
export CUDA_CACHE_MAXSIZE

count=0 around='' # what a start is run by
: >"$work/attempts"

# attempt NAME CACHE JIT WORDS...: one start; its report goes to the record. Returns its exit code.
attempt() {
    name=$1 cache=$2 jit=$3
    shift 3
    set -- --tier run --json --timeout "$timeout" "$@"
    [ -z "$stub" ] || set -- --stub "$stub" "$@"
    [ -z "$root" ] || set -- --root "$root" "$@"
    [ -d "$caches/$cache" ] || mkdir "$caches/$cache"
    code=0
    (
        [ "$jit" = true ] || export CUDA_DISABLE_PTX_JIT=1
        CUDA_CACHE_PATH=$inside/$cache
        export CUDA_CACHE_PATH
        [ -z "$around" ] || "$around" "$cache" "$@"
        exec "$verify" "$@"
    ) >"$work/report" 2>"$work/words" </dev/null || code=$?
    [ -s "$work/report" ] || echo null >"$work/report"
    {
        [ "$count" -eq 0 ] || echo ,
        printf '{"name":"%s","ptx_jit":%s,"exit":%s,"report":' "$name" "$jit" "$code"
        cat "$work/report"
        echo '}'
    } >>"$work/attempts"
    count=$((count + 1))
    took=$(sed -n 's/.*"first_run":[[:space:]]*\([0-9.e+-]*\).*/\1/p' "$work/report")
    say "$name: exit $code${took:+, first run $took s}"
    return "$code"
}

# What the cache is made for: the build of ONNX Runtime, whose kernels are in it.
hashes() {
    comma=''
    for file in "$root"/opt/onnxruntime/current/lib/libonnxruntime.so.*.*.* \
        "$root"/opt/onnxruntime/current/lib/libonnxruntime_providers_cuda.so; do
        [ -f "$file" ] || continue
        sum=$(sha256sum <"$file")
        printf '%s"%s":"%s"' "$comma" "${file##*/}" "${sum%% *}"
        comma=,
    done
}
identifier() {
    manifest=$root/usr/share/ortimg/manifest.json
    found=''
    [ ! -f "$manifest" ] ||
        found=$(sed -n 's/.*"identifier":[[:space:]]*"\([A-Za-z0-9._-]*\)".*/\1/p' "$manifest" | head -n 1)
    if [ -n "$found" ]; then echo "\"$found\""; else echo null; fi
}

# record EXIT: writes warm.json, whole or not at all, and ends.
record() {
    {
        printf '{"schema":1,"kind":"ortimg.warm","identifier":%s,"libraries":{%s},"cache_limit":%s,"attempts":[\n' \
            "$(identifier)" "$(hashes)" "$CUDA_CACHE_MAXSIZE"
        cat "$work/attempts"
        echo ']}'
    } >"$work/warm.json"
    chmod a+r "$work/warm.json"
    mv "$work/warm.json" "$out/warm.json" || refused "$out"
    exit "$1"
}
# Why a start failed: the verifier's own words, and what the record is to say.
failed() {
    say "$1 failed, see $out/warm.json"
    sed -n 's/^/  /p' "$work/words" >&2
    case $code in 2) exit 2 ;; 3) record 3 ;; *) record 1 ;; esac
}

# 1. Nothing in the cache, and nothing may be compiled. Also brings the libraries from the disk into memory.
if attempt no-cache empty false "$@"; then
    say "nothing is gained: every kernel is there as machine code for this GPU"
    [ "$force" = yes ] || record 0
elif [ "$code" -eq 2 ] || [ "$code" -eq 3 ]; then
    failed "the start without a cache"
fi
# 2. Cold: everything is compiled. Each time into a cache of its own; the last one stays.
number=1
while [ "$number" -le "$cold_starts" ]; do
    attempt cold "cold-$number" true "$@" || failed "a cold start"
    full=cold-$number
    number=$((number + 1))
done
# 3. The model of ort-verify too, so that the image can prove itself later without the user's model.
[ "$own" = no ] || attempt top-up "$full" true || failed "the start with the model of ort-verify"
# 4. What a second start takes: the measure.
number=1
while [ "$number" -le "$starts" ]; do
    attempt second "$full" true "$@" || failed "a second start"
    number=$((number + 1))
done
if [ -z "$(ls -A "$caches/$full")" ]; then
    say "the driver compiled nothing: there is no cache to keep"
    record 0
fi
# From here on nothing is added to that cache: each step has a copy, with the modes of an image or its own.
# 5. A copy at another place, 0755 and 0644, which the program can write to: what the entrypoint of an image gives.
#    The proof comes first, while no start can have added to the copy. `second-no-jit` tells a copy from the original.
copy_to() {
    cp -R "$caches/$full" "$caches/$1" && chmod -R u=rwX,go=rX "$caches/$1" || refused "${root:-$out}"
}
copy_to kept
attempt second-no-jit "$full" false "$@" || say "the cache itself is of no use where nothing may be compiled"
copy_to copied
attempt copied-no-jit copied false "$@" || failed "the start with a copy of the cache and without compiling"
[ "$own" = no ] || attempt copied-no-jit copied false || failed "the start of ort-verify's model without compiling"
number=1
while [ "$number" -le "$starts" ]; do
    attempt copied copied true "$@" || failed "a start with a copy of the cache"
    number=$((number + 1))
done

# 6. A copy that the program cannot write to, as in an image: a driver need not use it, and then nothing has failed.
#    Three ways, since the kernel's answer differs (EROFS, EACCES), and the driver may look at modes and owners.
unwritable() {
    kind=$1
    shift
    if attempt "$kind-no-jit" "$kind" false "$@" && { [ "$own" = no ] || attempt "$kind-no-jit" "$kind" false; }; then
        number=1
        while [ "$number" -le "$starts" ]; do
            attempt "$kind" "$kind" true "$@" || return 0
            number=$((number + 1))
        done
    else
        say "this driver does not use a cache $where"
    fi
}
skipped() { say "$1: skipped, $2"; }
# A mount namespace of its own, so that no mount is left, whatever ends us.
read_only() {
    folder=$caches/$1
    shift
    exec unshare -m sh -c 'set -e; mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"' \
        sh "$folder" "$verify" "$@"
}
seen_mount() {
    CUDA_CACHE_PATH=$seen/.work/caches/$1
    shift
    exec "$verify" "$@"
}
can_mount() {
    (
        verify=sh
        read_only read-only-mount -c '! touch "$1/a" 2>/dev/null' sh "$caches/read-only-mount"
    ) >/dev/null 2>&1
}

where="on a mount that is read-only"
copy_to read-only-mount
if [ -n "$seen" ] && [ -z "$root" ]; then
    around=seen_mount
elif can_mount; then
    around=read_only
fi
if [ -n "$around" ]; then
    unwritable read-only-mount "$@"
else
    skipped read-only-mount "no right to mount here"
fi
around=''

where="that belongs to another user"
copy_to other-uid
if [ -n "$root" ] && [ "$(id -u)" -eq 0 ] && chown -R 12345:12345 "$caches/other-uid" 2>/dev/null; then
    unwritable other-uid "$@" # ort-verify runs as root without rights, so it cannot write there
else
    skipped other-uid "it needs root and --root"
fi

where="of folders and files without a right to write (0555, 0444)"
copy_to no-write-bits
chmod -R a=rX "$caches/no-write-bits"
if [ -n "$root" ] || [ ! -w "$caches/no-write-bits" ]; then
    unwritable no-write-bits "$@"
else
    skipped no-write-bits "whoever runs this can write there all the same"
fi

cp -R "$caches/kept" "$out/cache" || refused "$out"
say "done: $(du -sk "$out/cache" | cut -f 1) KiB in $out/cache"
record 0
