#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make run` does once everything is built: the recorded vectors, the separate-process runs and the store's scenarios against
# the reference, a verdict on the terminal and one page with everything.
#
#   usage: conformance/checks/run.sh BUILD [TARGET]     TARGET as of --target, default ref; exit status of the worse run
set -u
build=$1
target=${2:-ref}
report=$build/report
rm -rf "$report"
mkdir -p "$report"
echo "Answers recorded from real vLLM releases, asked of the implementation under test:"
"$build/gcc/mooncheck" vectors --target "$target" --out "$report/vectors" fixtures/vectors
vectors=$?
echo
echo "The same prompts hashed in many processes of three builds, and of real vLLM where make deps-check fetched it:"
"$build/gcc/mooncheck" run --only 'hash.processes.*' --out "$report/processes"
processes=$?
echo
echo "Scenarios of the store, played by real processes over TCP, each judged from its history:"
"$build/gcc/mooncheck" run --world tcp --out "$report/scenarios"
scenarios=$?
echo
"$build/gcc/mooncheck" report --html "$report/index.html" "$report/vectors" "$report/processes" "$report/scenarios" || exit 2
echo "The report with every case: $report/index.html"
awk -F'[ ,]+' '/passed/ { p += $1; f += $3; s += $5 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' \
    "$report/vectors/closing.txt" "$report/processes/closing.txt" "$report/scenarios/closing.txt"
[ "$vectors" -eq 0 ] || exit "$vectors"
[ "$processes" -eq 0 ] || exit "$processes"
exit "$scenarios"
