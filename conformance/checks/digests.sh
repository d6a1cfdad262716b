#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The history of a seed is the same, played twice in one process (checker 10) and whatever compiled the simulator: digests of
# all scenarios, over all builds that are there.
#
#   usage: conformance/checks/digests.sh BUILD [SEEDS]      exit 0 or 1; closing line "N passed, N failed, N skipped"
set -u
build=$1
seeds=${2:-3}
passed=0
failed=0
builds=0
for variant in gcc clang gcc-O0 gcc-O3 asan ubsan; do
    [ -x "$build/$variant/mooncheck" ] && builds=$((builds + 1))
done
if [ "$builds" -lt 2 ]; then
    echo "digests: fewer than two builds of mooncheck in $build"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
for scenario in scenarios/*.json; do
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        first=""
        for variant in gcc clang gcc-O0 gcc-O3 asan ubsan; do
            [ -x "$build/$variant/mooncheck" ] || continue
            again=""
            [ -n "$first" ] || again=--twice
            # shellcheck disable=SC2086
            told=$("$build/$variant/mooncheck" sim "$scenario" --seed "$seed" $again)
            status=$?
            digest=$(echo "$told" | tail -1)
            [ -n "$first" ] || first=$digest
            if [ "$status" -ne 0 ]; then
                echo "$told"
                failed=$((failed + 1))
            elif [ -n "$digest" ] && [ "$digest" = "$first" ]; then
                passed=$((passed + 1))
            else
                echo "digests: $scenario seed $seed: $variant gives \"$digest\", another build \"$first\""
                failed=$((failed + 1))
            fi
        done
        seed=$((seed + 1))
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
