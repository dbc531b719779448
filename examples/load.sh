#!/usr/bin/env bash
# Puts load on a service that runs, and says what came of it: load.sh URL BODY [SECONDS [CONNECTIONS…]]
#   examples/load.sh http://127.0.0.1:8080 body.json 10 1 4 16
# BODY: file with the JSON of one request. Each connection sends its next request when the last one is answered.
# Text goes to stderr, JSON to stdout. The tool is vegeta (https://github.com/tsenart/vegeta): $VEGETA, or the one on
# PATH, or scripts/go-tools.sh builds it, once. Exit 1: an answer was not 200.
set -euo pipefail

if (($# < 2)); then
    echo "usage: load.sh http://HOST:PORT BODY [SECONDS [CONNECTIONS…]]" >&2
    exit 2
fi
url=${1%/} body=$2 seconds=${3:-10}
shift $(($# < 3 ? $# : 3))
connections=("$@")
((${#connections[@]})) || connections=(1 4 16)
[[ $url =~ ^http://[^/:]+:[0-9]+$ ]] || { echo "error: $url is not of the form http://HOST:PORT" >&2; exit 2; }
[[ -f $body ]] || { echo "error: there is no file $body" >&2; exit 2; }
vegeta=${VEGETA:-$(command -v vegeta || true)}
if [[ -z $vegeta ]]; then
    "$(dirname "$0")/../scripts/go-tools.sh" vegeta
    vegeta=${ORTIMG_TOOLS:-$HOME/.cache/ortimg-tools}/bin/vegeta
fi

get() { # get PATH: the body of the answer, by bash alone
    local host=${url#http://}
    exec 3<>"/dev/tcp/${host%:*}/${host##*:}" || exit 3 # bash has said why
    printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
    sed '1,/^\r*$/d' <&3
    exec 3>&-
}

sum_and_count() { # of ort_inference_seconds
    get /metrics | awk '$1 == "ort_inference_seconds_sum" { s = $2 } $1 == "ort_inference_seconds_count" { c = $2 }
        END { print s, c }' # in either order: exporters differ
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target() { printf 'POST %s/v1/infer\nContent-Type: application/json\n@%s\n' "$url" "$body"; }
attack() { # attack CONNECTIONS SECONDS
    target | "$vegeta" attack -rate=0 -max-workers="$1" -workers="$1" -duration="$2s" -timeout=60s
}

ready=$(get /readyz) # ends here, with bash's own words, where nobody answers
processor=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
printf '{"ready":%s,"processor":"%s","cores":%d,"load_before":"%s","seconds":%d,"body_bytes":%d,"runs":[' \
    "$ready" "$processor" "$(nproc)" "$(cut -d' ' -f1-3 /proc/loadavg)" "$seconds" "$(stat -c %s "$body")"
attack 4 1 >/dev/null # the clients' own first second is not counted
separator='' status=0
for number in "${connections[@]}"; do
    read -r sum count < <(sum_and_count)
    attack "$number" "$seconds" >"$work/results"
    read -r sum_after count_after < <(sum_and_count)
    model=$(awk -v s="$sum" -v t="$sum_after" -v c="$count" -v d="$count_after" \
        'BEGIN { printf "%.6f", (d > c) ? (t - s) / (d - c) : 0 }')
    report=$("$vegeta" report -type=json "$work/results")
    printf '%s{"connections":%d,"inference_seconds":%s,"report":%s}' "$separator" "$number" "$model" "$report"
    {
        echo "connections $number, mean of the model's run ${model} s"
        "$vegeta" report -type=text "$work/results" | grep -E '^(Requests|Latencies|Success|Status|Error|[0-9])'
    } >&2
    [[ $report == *'"success":1,'* ]] || status=1
    separator=,
done
echo ']}'
exit "$status"
