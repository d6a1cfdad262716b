#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real Mooncake clients on our master and owner, our clients on the real master: one flow, every mixture, same expectations.
#
#   usage: conformance/checks/store_peers.sh BUILD [PART...]     PART: real (all real: the base line), master, owner, client, ours
set -u
build=$1
shift
python=$build/deps/venv/bin/python
conformance/checks/wheel.sh "$build" || exit $?
[ $# -gt 0 ] || set -- real master owner client ours
passed=0
failed=0
for part in "$@"; do
    case $part in # master, owner, requesters
    real) kinds="real real real" ;;
    master) kinds="ours real real" ;;
    owner) kinds="ours ours real" ;;
    client) kinds="real real ours" ;;
    ours) kinds="real ours ours" ;;
    *) echo "store_peers: no part $part" >&2; exit 2 ;;
    esac
    # shellcheck disable=SC2086
    set -- $kinds "$@"
    out=$(timeout -k 5 150 "$python" conformance/adapters/mooncake/flow.py --master "$1" --owner "$2" --requester "$3" \
        --mooncheck "$build/gcc" 2>/dev/null)
    status=$?
    line=$(echo "$out" | grep -E '^[0-9]+ passed, [0-9]+ failed' | tail -1)
    echo "$part: $1 master, $2 owner, $3 requesters: ${line:-no result (exit $status)}"
    echo "$out" | grep -v "^[0-9]* passed" | sed 's/^/    /'
    shift 3
    ok=${line%% passed*}
    bad=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-0}))
    [ "$status" -eq 0 ] || [ "${bad:-0}" -gt 0 ] || failed=$((failed + 1))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
