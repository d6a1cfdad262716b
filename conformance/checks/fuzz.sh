#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every libFuzzer target for a while from its corpus, two at a time.
#
#   usage: conformance/checks/fuzz.sh BUILD SECONDS [NAME]     new inputs and crashes stay in BUILD/fuzz/corpus
# Exit 0 if none found a fault. Closing line counts targets.
set -u
build=$1
seconds=$2
only=${3:-}
mkdir -p "$build/fuzz/corpus" "$build/fuzz/log"
run_one() { # program
    name=$(basename "$1")
    mkdir -p "$build/fuzz/corpus/$name"
    "$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="$build/fuzz/log/$name." "$build/fuzz/corpus/$name" >"$build/fuzz/log/$name.log" 2>&1
    echo $? >"$build/fuzz/log/$name.status"
}
passed=0
failed=0
set --
for program in $(find "$build/fuzz/bin" -type f -name '*_fuzz' | sort); do
    case $program in *"$only"*) set -- "$@" "$program" ;; esac
done
while [ $# -gt 0 ]; do
    pair="$1 ${2:-}"
    for program in $pair; do run_one "$program" & done
    wait
    for program in $pair; do
        name=$(basename "$program")
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz/log/$name.log")
        if [ "$(cat "$build/fuzz/log/$name.status")" = 0 ]; then
            echo "fuzz: $name clean after ${runs:-?} runs in $seconds s"
            passed=$((passed + 1))
        else
            echo "fuzz: $name FAILED, see $build/fuzz/log/$name.*"
            tail -30 "$build/fuzz/log/$name.log"
            failed=$((failed + 1))
        fi
    done
    shift
    [ $# -gt 0 ] && shift
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
