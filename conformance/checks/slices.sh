#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a list of slices, each with a time budget, and closes with the sum of what they counted.
#
#   usage: conformance/checks/slices.sh LIST [NAME...]
# LIST has one slice a line:  NAME | BUDGET_S | NEEDS | COMMAND      ('#' starts a comment line)
# NEEDS is empty or a name for MOONCHECK_REQUIRE (pypi, ...): a slice that exits 77 is a skip, or a failure if its need
# is listed there. A slice is killed at three times its budget; being over budget is shown, never a failure.
# Logs: $MOONCHECK_LOGS (default build/check). Exit 0 if nothing failed.
set -u
list=$1
shift
logs=${MOONCHECK_LOGS:-build/check}
mkdir -p "$logs"
passed=0
failed=0
skipped=0
broken=""
started=$(date +%s)
wanted() {
    [ $# -eq 1 ] && return 0
    name=$1
    shift
    for w in "$@"; do [ "$w" = "$name" ] && return 0; done
    return 1
}
while IFS='|' read -r name budget needs command; do
    name=$(echo "$name" | tr -d ' ')
    case $name in '' | '#'*) continue ;; esac
    wanted "$name" "$@" || continue
    budget=$(echo "$budget" | tr -d ' ')
    needs=$(echo "$needs" | tr -d ' ')
    begin=$(date +%s)
    timeout -k 10 $((budget * 3)) sh -c "$command" >"$logs/$name.log" 2>&1 </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
    line=$(grep -E '^([A-Za-z_./-]+: )?[0-9]+ passed, [0-9]+ failed' "$logs/$name.log" | tail -1)
    ok=$(echo "$line" | sed -n 's/^[^0-9]*\([0-9]*\) passed.*/\1/p')
    bad=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    left=$(echo "$line" | sed -n 's/.* \([0-9]*\) skipped.*/\1/p')
    verdict=ok
    if [ "$status" -eq 77 ]; then
        case ",${MOONCHECK_REQUIRE:-}," in
        *",$needs,"*) [ -n "$needs" ] && verdict="FAILED (needs $needs, which is required here)" || verdict=skipped ;;
        *) verdict=skipped ;;
        esac
        if [ "$verdict" = skipped ]; then
            [ "${left:-0}" -gt 0 ] || left=1
            verdict="skipped: $(grep -m1 -iE 'skip' "$logs/$name.log" | cut -c1-90)"
        else
            bad=$((${bad:-0} + 1))
        fi
    elif [ "$status" -ne 0 ]; then
        verdict="FAILED (exit $status)"
        [ "$status" -eq 124 ] && verdict="FAILED (killed after $((budget * 3)) s)"
        [ "${bad:-0}" -gt 0 ] || bad=1
    elif [ -z "$line" ]; then
        ok=1
    fi
    over=""
    [ "$seconds" -gt "$budget" ] && over="  over budget"
    printf '%-22s %5d s of %4d  %6d passed %4d failed %4d skipped  %s%s\n' "$name" "$seconds" "$budget" "${ok:-0}" \
        "${bad:-0}" "${left:-0}" "$verdict" "$over"
    case $verdict in FAILED*)
        broken="$broken $name"
        tail -25 "$logs/$name.log" | sed 's/^/    /'
        ;;
    esac
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-0}))
    skipped=$((skipped + ${left:-0}))
done <"$list"
[ -z "$broken" ] || echo "failed slices:$broken (logs in $logs)"
echo "all slices took $(($(date +%s) - started)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
