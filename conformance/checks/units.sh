#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every unit test of one build and sums their closing lines.
#
#   usage: conformance/checks/units.sh BUILD/VARIANT [WRAPPER...]     WRAPPER: for example valgrind with its options
# Exit 0 if all passed. A test that dies or prints no closing line counts as failed.
set -u
folder=$1/test
shift
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for test in $(find "$folder" -type f -name '*_test' | sort); do
    timeout -k 5 "${MOONCHECK_UNIT_TIMEOUT:-300}" "$@" "$test" >"$log" 2>&1
    status=$?
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
