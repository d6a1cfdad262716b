#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real vLLM connectors on real Mooncake clients on our master: scenarios of the rig, compared with the recorded runs.
#
#   usage: conformance/checks/rig.sh BUILD SCENARIO...
set -u
build=$1
shift
python=$build/deps/venv/bin/python
conformance/checks/wheel.sh "$build" || exit $?
work=$(mktemp -d)
"$build/gcc/mooncheck-master" --rpc_address=127.0.0.1 --rpc_port=0 >"$work/master" 2>&1 &
master=$!
trap 'kill $master 2>/dev/null; wait $master 2>/dev/null; rm -rf "$work"' EXIT
port=""
for _ in $(seq 200); do
    port=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$work/master")
    [ -n "$port" ] && break
    sleep 0.05
done
[ -n "$port" ] || { cat "$work/master"; echo "rig: mooncheck-master does not listen"; exit 1; }
status=0
passed=0
failed=0
for scenario in "$@"; do
    out=$(timeout -k 5 120 "$python" conformance/adapters/rig/rig.py --master "127.0.0.1:$port" --vllm "$build/deps/vllm/0.33.0" \
        --scenario "$scenario" --like "fixtures/cluster/$scenario.json" 2>/dev/null)
    one=$?
    echo "$out"
    line=$(echo "$out" | tail -1)
    [ "$one" -eq 0 ] || { status=1; failed=$((failed + 1)); }
    case $line in "1 passed, 0 failed"*) passed=$((passed + 1)) ;; esac
done
echo "$passed passed, $failed failed, 0 skipped"
exit $status
