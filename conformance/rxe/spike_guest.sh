#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What spike.sh runs in its guests. Says "ok NAME", "not ok NAME" with the reason, or "skip NAME", one a line.
#
#   usage: spike_guest.sh BIN VENV one|two|real        (NODE, SELF, PEER and OUT are set by guest.sh)
set -u
bin=$1
venv=$2
case=$3
here=conformance/rxe
address=7f0000000000
bytes=1048576
logs=$OUT/$case.$NODE
mkdir -p "$logs"

verdict() { # name, what was seen, what was expected
    if [ -n "$2" ] && [ "$2" = "$3" ]; then
        echo "ok $1"
    else
        echo "not ok $1: saw '$2', expected '$3'"
        tail -n 5 "$logs"/*.log 2>/dev/null | sed 's/^/    /'
    fi
}

wait_for() { # pattern, file, seconds, process
    for _ in $(seq $(($3 * 20))); do
        grep -q "$1" "$2" 2>/dev/null && return 0
        [ -z "${4:-}" ] || kill -0 "$4" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

digest() { # word, file
    sed -n "s/^$1 bytes=$bytes digest=//p" "$2"
}

start_owner() { # port
    "$bin/mooncheck-rdma" owner --device rxe0 --host "$SELF" --port "$1" --address $address --bytes $bytes \
        >"$logs/owner.log" 2>&1 &
    owner=$!
    wait_for '^offered' "$logs/owner.log" 20 $owner
}

stop_owner() {
    kill "$owner" && wait "$owner"
}

move() { # host of the owner, operation
    timeout 30 "$bin/mooncheck-rdma" requester --device rxe0 --host "$SELF" --peer "$1:15001" --address $address \
        --bytes $bytes --op "$2" --fill 7 >"$logs/$2.log" 2>&1
}

device_tests() {
    local test=$bin/test/ref/fabric/verbs_test
    if [ -x "$test" ]; then
        "$test" >"$logs/unit.log" 2>&1
        verdict "unit tests of the verbs, with a device" "$(tail -n 1 "$logs/unit.log" | sed 's/.*passed, //')" "0 failed, 0 skipped"
    else
        echo "skip unit tests of the verbs: $test is not built"
    fi
}

one_guest() {
    device_tests
    start_owner 15001
    move "$SELF" read
    verdict "ours reads ours" "$(digest read "$logs/read.log")" "$(digest offered "$logs/owner.log")"
    move "$SELF" write
    stop_owner
    verdict "ours writes ours" "$(digest left "$logs/owner.log")" "$(digest write "$logs/write.log")"
}

two_guests() {
    if [ "$NODE" = 2 ]; then
        start_owner 15001
        wait_for done "$OUT/two.done" 60
        stop_owner
        return
    fi
    wait_for '^offered' "$OUT/two.2/owner.log" 60
    move "$PEER" read
    verdict "ours reads ours on another machine" "$(digest read "$logs/read.log")" "$(digest offered "$OUT/two.2/owner.log")"
    move "$PEER" write
    echo done >"$OUT/two.done"
    wait_for '^left' "$OUT/two.2/owner.log" 20
    verdict "ours writes ours on another machine" "$(digest left "$OUT/two.2/owner.log")" "$(digest write "$logs/write.log")"
}

real_requester_reads_ours() {
    start_owner 15002
    timeout 60 "$venv/bin/python" $here/real_requester.py --host "$SELF" --device rxe0 --peer "$SELF:15002" \
        --address $address >"$logs/requester.log" 2>"$logs/requester.err.log"
    stop_owner
    verdict "a real engine reads ours" "$(digest 'real read' "$logs/requester.log")" "$(digest offered "$logs/owner.log")"
    verdict "a real engine writes ours" "$(digest left "$logs/owner.log")" "$(digest 'real write' "$logs/requester.log")"
}

ours_reads_real_owner() {
    local master
    master=$(echo "$venv"/lib/python3.*/site-packages/mooncake/mooncake_master)
    "$master" --rpc_port=50051 --metrics_port=9003 --rpc_address="$SELF" --logtostderr=true \
        --enable_metric_reporting=false >"$logs/master.log" 2>&1 &
    local master_process=$!
    for _ in $(seq 400); do
        (: >"/dev/tcp/$SELF/50051") 2>/dev/null && break
        sleep 0.05
    done
    "$venv/bin/python" $here/real_owner.py --host "$SELF" --master "$SELF:50051" --device rxe0 --bytes $bytes \
        >"$logs/owner.log" 2>"$logs/owner.err.log" &
    owner=$!
    wait_for '^real put' "$logs/owner.log" 60 $owner
    timeout 30 "$bin/mooncheck-rdma" fetch --device rxe0 --host "$SELF" --master "$SELF:50051" --key object \
        >"$logs/fetch.log" 2>&1
    verdict "ours reads what a real client put, from the real owner" "$(digest fetched "$logs/fetch.log")" \
        "$(digest 'real put' "$logs/owner.log")"
    stop_owner
    verdict "the real owner is unharmed" "$(grep '^real get' "$logs/owner.log")" "real get equal=True"
    kill $master_process && wait $master_process
}

case $case in
one) one_guest ;;
two) two_guests ;;
real)
    one_guest
    real_requester_reads_ours
    ours_reads_real_owner
    ;;
esac
