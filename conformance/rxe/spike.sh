#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verbs over soft-RoCE: our owner and requester with each other, in one guest and between two, and with a real Mooncake.
#
#   usage: conformance/rxe/spike.sh BUILD [VENV]
# VENV has Mooncake's wheel (default BUILD/deps/venv); without it its checks are skipped. Closing line
# "N passed, N failed, N skipped"; exit 0, 1, or 77 with the reason if no guest can be run.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(realpath "$1")
venv=${2:-$build/deps/venv}
if [ ! -x "$build/gcc/mooncheck-rdma" ]; then
    echo "rxe: SKIP: $build/gcc/mooncheck-rdma is not built"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
out=$build/rxe
log=$out/spike.log
rm -rf "$out"
mkdir -p "$out"

guest() { # arguments of guest.sh, then of spike_guest.sh
    local count=$1 memory=$2 case=$3
    conformance/rxe/guest.sh -k "$build/deps/rxe" -n "$count" -o "$out" -m "$memory" -t 170 \
        bash conformance/rxe/spike_guest.sh "$build/gcc" "$venv" "$case" >"$out/$case.out" 2>&1
    local status=$?
    if [ $status -eq 77 ]; then
        cat "$out/$case.out"
        echo "0 passed, 0 failed, 1 skipped"
        exit 77
    fi
    sed 's/^\[[12]\] //' "$out/$case.out" >>"$log"
    [ $status -eq 0 ] || echo "not ok guest $case: ended with $status" >>"$log"
}

if [ -x "$venv/bin/python" ]; then
    guest 1 1500 real
else
    guest 1 768 one
    echo "skip Mooncake's wheel is not in $venv" >>"$log"
fi
guest 2 768 two
if python3 conformance/rxe/wire.py "$out/wire.pcap" 1048576 1048576 >>"$log" 2>&1; then
    echo "ok between two machines bytes moved one-sidedly" >>"$log"
else
    echo "not ok between two machines bytes moved one-sidedly" >>"$log"
fi

cat "$log"
passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^not ok ' "$log")
skipped=$(grep -c '^skip ' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
