#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unit tests, the recorded vectors in process and through the example adapter, all built with one sanitizer.
#
#   usage: conformance/checks/sanitized.sh BUILD/VARIANT
set -u
folder=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
passed=0
for step in "conformance/checks/units.sh $folder" "$folder/mooncheck vectors fixtures/vectors" \
    "$folder/mooncheck vectors --target cmd:$folder/mooncheck-adapter-example fixtures/vectors"; do
    $step >"$log" 2>&1
    status=$?
    line=$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
    if [ "$status" -ne 0 ] || grep -qE 'ERROR: (Address|Leak|Thread)Sanitizer|runtime error:|WARNING: ThreadSanitizer' "$log"; then
        echo "sanitized: FAILED: $step (exit $status)"
        grep -nE 'Sanitizer|runtime error|FAILED' "$log" | head -10
        tail -20 "$log"
        failed=$((failed + 1))
    fi
    echo "sanitized: $step: $line"
    passed=$((passed + $(echo "$line" | sed -n 's/^[^0-9]*\([0-9]*\) passed.*/\1/p')))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
