#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every unit test of one build, as many at a time as there are cores, and sums their closing lines.
#
#   usage: conformance/checks/units.sh BUILD/VARIANT [WRAPPER...]     WRAPPER: for example valgrind with its options
# Exit 0 if all passed. A test that dies or prints no closing line counts as failed.
set -u
if [ "$1" = --one ]; then # FOLDER TEST [WRAPPER...]: runs one, leaves its log in FOLDER
    log=$2/$(echo "$3" | tr / _)
    test=$3
    shift 3
    timeout -k 5 "${MOONCHECK_UNIT_TIMEOUT:-300}" "$@" "$test" >"$log.log" 2>&1
    echo "$? $test" >"$log.status"
    exit 0
fi
folder=$1/test
shift
passed=0
failed=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# The largest files first: they tend to run longest.
find "$folder" -type f -name '*_test' -printf '%s %p\n' | sort -rn | cut -d ' ' -f 2 |
    xargs -P "$(nproc)" -I '{}' "$0" --one "$logs" '{}' "$@"
for status_file in "$logs"/*.status; do
    [ -e "$status_file" ] || continue
    read -r status test <"$status_file"
    log=${status_file%.status}.log
    line=$(grep -E '^[^:]+: [0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
    ok=$(echo "$line" | sed -n 's/.*: \([0-9]*\) passed.*/\1/p')
    bad=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    if [ "$status" -ne 0 ] || [ -z "$line" ]; then
        echo "unit: $test exited with $status"
        tail -40 "$log"
        [ "${bad:-0}" -gt 0 ] || bad=1
    fi
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-0}))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
