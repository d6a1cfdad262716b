#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything at full length: the slices of `make check`, then those of full.slices. Each slice writes what it found to
# reports/full/NAME.txt, headed by version, commit, date and machine.
#
#   usage: conformance/checks/full.sh BUILD [NAME...]     a name picks one slice
set -u
BUILD=$1
export BUILD
shift
mkdir -p reports/full
status=0
MOONCHECK_LOGS=$BUILD/full
export MOONCHECK_LOGS
for list in conformance/checks/check.slices conformance/checks/full.slices; do
    for name in $(sed -n 's/^\([a-z][a-z0-9-]*\) *|.*/\1/p' "$list"); do
        if [ $# -gt 0 ]; then
            case " $* " in *" $name "*) ;; *) continue ;; esac
        fi
        # The last line of a run of one slice is its own sum; the lines before it tell time and budget.
        {
            echo "$("$BUILD/gcc/mooncheck" --version), commit $(git describe --always --dirty 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d)"
            echo "$(uname -srm), $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')"
            echo
        } >"reports/full/$name.txt"
        conformance/checks/slices.sh "$list" "$name" >"$BUILD/full.out" || status=1
        tee -a "reports/full/$name.txt" <"$BUILD/full.out"
        { echo; grep -E 'passed|equal|clean after|coverage:|ref/' "$BUILD/full/$name.log" | tail -60; } >>"reports/full/$name.txt"
    done
done
exit "$status"
