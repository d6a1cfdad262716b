#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything at full length: the slices of `make check` and then those of full.slices; the summary goes to reports/full.
#
#   usage: conformance/checks/full.sh BUILD [NAME...]     (a name picks one slice of full.slices)
set -u
BUILD=$1
export BUILD
shift
mkdir -p reports/full
status=0
{
    echo "mooncheck $("$BUILD/gcc/mooncheck" --version), $(date -u +%Y-%m-%d), $(uname -srm), $(nproc) cores"
    echo
    if [ $# -eq 0 ]; then
        MOONCHECK_LOGS=$BUILD/check conformance/checks/slices.sh conformance/checks/check.slices || status=1
        echo
    fi
    MOONCHECK_LOGS=$BUILD/full conformance/checks/slices.sh conformance/checks/full.slices "$@" || status=1
    for log in "$BUILD"/full/*.log; do
        [ -f "$log" ] || continue
        echo
        echo "== $(basename "$log" .log)"
        grep -E 'clean after|passed|drawn|equal' "$log" | tail -40
    done
    echo "$status" >"$BUILD/full.status"
} 2>&1 | tee reports/full/summary.txt
exit "$(cat "$BUILD/full.status")"
