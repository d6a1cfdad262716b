#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The daemons as processes: masters, owners and clients beside each other, killed and started again, and bad input.
#
#   usage: ref/daemon/daemon_test.sh FOLDER      with mooncheck-master and mooncheck-client in it
# Exit 0 or 1; closing line "N passed, N failed, 0 skipped". Every process is bounded and ended by its id.
set -u
master=$1/mooncheck-master
client=$1/mooncheck-client
passed=0
failed=0
folder=$(mktemp -d) || exit 2
master_pid=""
owner_pid=""
end() { # pid, signal: ends a process of ours; its exit status
    [ -n "$1" ] || return 0
    kill "-$2" "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}
trap 'end "$owner_pid" KILL; end "$master_pid" KILL; rm -rf "$folder"' EXIT
trap 'exit 2' INT TERM HUP

pass() {
    passed=$((passed + 1))
}
fault() { # sentence, what is wrong
    echo "daemon: FAILED: $1: $2"
    sed 's/^/    /' "$folder/err" 2>/dev/null | head -5
    failed=$((failed + 1))
}
is() { # sentence, seen, expected
    if [ "$2" = "$3" ]; then pass; else fault "$1" "\"$2\", expected \"$3\""; fi
}
has() { # sentence, text, file
    if grep -qF -e "$2" "$3"; then pass; else fault "$1" "no \"$2\" in $(head -c 400 "$3")"; fi
}
# The command in "$@" must exit with that status; nothing on stdout and one line on stderr if it is 2.
exits() { # status, sentence, text of stderr (or ""), command...
    expected=$1
    sentence=$2
    text=$3
    shift 3
    timeout 60 "$@" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    if [ "$status" -ne "$expected" ]; then
        fault "$sentence" "exit status $status, not $expected"
    elif [ "$status" -eq 2 ] && { [ -s "$folder/out" ] || [ "$(wc -l <"$folder/err")" -ne 1 ]; }; then
        fault "$sentence" "not exactly one line on stderr and nothing on stdout"
    elif [ -n "$text" ] && ! grep -qF -e "$text" "$folder/err"; then
        fault "$sentence" "the message does not say \"$text\""
    else
        pass
    fi
}
wait_for() { # text, file: waits at most ten seconds until the file has the text
    tries=0
    while ! grep -qF -e "$1" "$2" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || return 1
        sleep 0.05
    done
}
start_master() { # options...
    : >"$folder/master.out"
    (
        ulimit -t 300
        exec "$master" --rpc_address 127.0.0.1 "$@"
    ) >"$folder/master.out" 2>"$folder/master.err" &
    master_pid=$!
    wait_for "listening on" "$folder/master.out" || fault "the master starts" "$(cat "$folder/master.err")"
    address=$(sed -n 's/^mooncheck-master: listening on //p' "$folder/master.out")
}
start_owner() { # options...
    : >"$folder/owner.out"
    (
        ulimit -t 300
        exec "$client" owner --master "$address" "$@"
    ) >"$folder/owner.out" 2>"$folder/owner.err" &
    owner_pid=$!
    wait_for "lending" "$folder/owner.out" || fault "the owner starts" "$(cat "$folder/owner.err")"
}

# ---- command lines
exits 0 "master --help" "" "$master" --help
has "help tells the flags" "--default_kv_lease_ttl" "$folder/out"
exits 0 "master --version" "" "$master" --version
exits 0 "client --help" "" "$client" --help
exits 0 "client put --help" "" "$client" put --help
exits 0 "client --version" "" "$client" --version
has "the version is one line" "mooncheck-client 0." "$folder/out"
exits 2 "an unknown flag" "did you mean --enable_offload?" "$master" --enable_ofload=true
exits 2 "an unknown flag of ours" "did you mean --history?" "$master" --histroy x
exits 2 "a flag that is not implemented" "--enable_ha=true is not implemented yet" "$master" --enable_ha
exits 2 "a flag that is not implemented, with a value" "only its default is, which is \"9003\"" "$master" --metrics_port 9004
exits 2 "a duration with a wrong unit" "is no unit" "$master" --client_ttl=10parsecs
exits 2 "a duration that is too long" "too much" "$master" --default_kv_lease_ttl=99999999999999h
exits 2 "a ratio over 1" "within 0 and 1" "$master" --eviction_ratio 1.5
exits 2 "timeouts in the wrong order" "must be more than" "$master" --put_start_release_timeout_sec=30s
exits 2 "a port that is none" "within 0 and 65535" "$master" --port 65536
exits 2 "an unknown release" "the newest is" "$master" --release 9.9.9
exits 2 "a seed that is no number" "whole number" "$master" --seed 1x
exits 2 "a history in a folder that is not there" "cannot open" "$master" --history "$folder/none/h"
exits 2 "a control descriptor that is not there" "" "$master" --port 0 --control 77
exits 2 "an address of another machine" "203.0.113.9" "$master" --rpc_address 203.0.113.9
exits 2 "an operand for the master" "" "$master" surplus
exits 2 "no command" "needs a command" "$client"
exits 2 "an unknown command" "did you mean \"exist\"?" "$client" exists k
exits 2 "an owner without memory" "--segment is missing" "$client" owner
exits 2 "a segment without bound" "too much" "$client" owner --segment 9999999999999TB
exits 2 "a segment that no machine has" "no memory" "$client" owner --segment 900000TB
exits 2 "a master that is no address" "HOST:PORT" "$client" exist --master nonsense k
exits 2 "a file that is not there" "cannot open" "$client" put k "$folder/none"
exits 1 "nobody listens" "setup at 127.0.0.1:1: RPC_FAIL" "$client" exist --master 127.0.0.1:1 k

# ---- a master, its flags, and the port in use
start_master --port 0 -default_kv_lease_ttl=300ms --client_ttl 2s --enable_ha=false --metrics_port=9003 --noenable_offload \
    --eviction_ratio=0.05 --nof_eviction_ratio 0.050 --seed 7 --history "$folder/master.history" --node m --boot 3
case $address in 127.0.0.1:[1-9]*) pass ;; *) fault "the master says where it listens" "$address" ;; esac
exits 2 "a port in use" "$address" "$master" --rpc_address 127.0.0.1 --port "${address##*:}"
exits 1 "a store without memory" "NO_AVAILABLE_HANDLE (-200)" "$client" put --master "$address" k "$master"

# ---- bytes between processes
start_owner --segment 256MiB --history "$folder/owner.history" --node o
for bytes in 1 4095 65536 1048577 67108864; do
    head -c "$bytes" /dev/urandom >"$folder/value"
    exits 0 "put $bytes bytes" "" "$client" put --master "$address" "key $bytes" "$folder/value"
    exits 0 "get $bytes bytes" "" "$client" get --master "$address" "key $bytes" "$folder/back"
    if cmp -s "$folder/value" "$folder/back"; then pass; else fault "get $bytes bytes" "other bytes"; fi
done
printf 'from a pipe' | timeout 20 "$client" put --master "$address" piped - 2>"$folder/err"
is "put from standard input" "$(timeout 20 "$client" get --master "$address" piped)" "from a pipe"
exits 1 "put of nothing" "put empty: INVALID_PARAMS (-600)" "$client" put --master "$address" empty /dev/null
exits 1 "put of nothing stores nothing" "" "$client" exist --master "$address" empty
exits 1 "get of what is not there" "get nothing: OBJECT_NOT_FOUND (-704)" "$client" get --master "$address" nothing "$folder/none"
if [ -e "$folder/none" ]; then fault "get of what is not there" "it left a file"; else pass; fi
exits 1 "exist tells each" "" "$client" exist --master "$address" "key 1" nothing
is "exist tells each" "$(cat "$folder/out")" "yes key 1
no nothing"
exits 1 "rm of what a reader has" "OBJECT_HAS_LEASE (-706)" "$client" rm --master "$address" "key 1"
exits 0 "rm --force" "" "$client" rm --force --master "$address" "key 1"
sleep 0.4
exits 0 "rm after the lease" "" "$client" rm --master "$address" "key 4095"

if [ -w /dev/full ]; then
    timeout 20 "$client" exist --master "$address" --history /dev/full k >"$folder/out" 2>"$folder/err"
    is "a history on a full disk" $? 2
    is "and it is said once" "$(grep -c 'cannot be written' "$folder/err")" 1
fi

# ---- the agent
agent() { # lines...; answers in $folder/out
    printf '%s\n' "$@" | timeout 60 "$client" agent >"$folder/out" 2>"$folder/err"
}
setup='{"do":"store","seq":1,"client":"c","call":"setup","args":{"local_hostname":"127.0.0.1","master_server_addr":"'$address'","global_segment_size":0}}'
# Answers of calls that do not wait for each other come as they end: each step is a call of its own, sent when the one
# before it was answered.
cat >"$folder/agent.py" <<'PYTHON'
import json, subprocess, sys
agent = subprocess.Popen([sys.argv[1], "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    agent.stdin.write(line)
    agent.stdin.flush()
    answer = agent.stdout.readline()
    print(answer, end="")
agent.stdin.close()
sys.exit(agent.wait(30))
PYTHON
say() { # lines..., one after the other
    printf '%s\n' "$@" | timeout 60 python3 "$folder/agent.py" "$client" >"$folder/out" 2>"$folder/err"
}
store() { # call, args
    printf '{"do":"store","seq":2,"client":"c","call":"%s","args":%s}' "$1" "$2"
}
say '{"do":"start","protocol":1,"folder":"'"$folder"'"}' "$setup" \
    "$(store put '{"key":"a","value":{"hex":"00ff10"}}')" \
    "$(store get '{"key":"a","bytes":10,"want":"hex"}')" \
    "$(store get '{"key":"a","bytes":2}')" \
    "$(store batch_put '{"keys":["b",{"hex":"ff00"}],"values":[{"fill":5,"bytes":100000},{"file":"value","offset":10,"length":5}]}')" \
    "$(store batch_get '{"keys":["b",{"hex":"ff00"},"nothing"],"bytes":[100000,5,1]}')" \
    "$(store multi_put '{"keys":["p"],"values":[{"fill":5,"bytes":100000}],"sizes":[[1,99000,999]]}')" \
    "$(store multi_get '{"keys":["p"],"sizes":[[50000,50000]]}')" \
    "$(store exist '{"keys":["a","nothing"]}')" "$(store size '{"keys":["b"]}')" "$(store exist '{"keys":[]}')" \
    "$(store remove '{"keys":["a"],"force":true}')" "$(store remove_all '{"force":true}')" "$(store close '{}')" \
    "$setup" '{"do":"stop"}'
is "the agent ends after a stop" $? 0
digest=$(sed -n '7s/.*"digests":\["\([0-9a-f]*\)".*/\1/p' "$folder/out")
sed 1d "$folder/out" >"$folder/answers"
is "the agent's answers" "$(cat "$folder/answers")" '{"seq":1,"result":{"code":0}}
{"seq":2,"result":{"code":0}}
{"seq":2,"result":{"code":3,"hex":"00ff10"}}
{"seq":2,"result":{"code":-600}}
{"seq":2,"result":{"codes":[0,0]}}
{"seq":2,"result":{"codes":[100000,5,-704],"digests":["'"$digest"'","'"$(tail -c +11 "$folder/value" | head -c 5 >"$folder/part"; python3 -c 'import sys
try:
    import xxhash
    print(xxhash.xxh3_64_hexdigest(open(sys.argv[1], "rb").read()))
except ImportError:
    print(sys.argv[2])' "$folder/part" "$(sed -n '7s/.*"digests":\["[0-9a-f]*","\([0-9a-f]*\)".*/\1/p' "$folder/out")")"'",null]}}
{"seq":2,"result":{"codes":[0]}}
{"seq":2,"result":{"codes":[100000],"digests":["'"$digest"'"]}}
{"seq":2,"result":{"codes":[1,0]}}
{"seq":2,"result":{"codes":[100000]}}
{"seq":2,"result":{"codes":[]}}
{"seq":2,"result":{"codes":[0]}}
{"seq":2,"result":{"code":7}}
{"seq":2,"result":{"code":0}}
{"seq":1,"result":{"code":0}}
{"ok":{}}'

bad() { # sentence, text of the error, line: the agent answers with an error, and goes on
    agent "$3" "$setup" '{"do":"start","protocol":1}'
    if head -1 "$folder/out" | grep -F '"error"' | grep -qF -e "$2" && grep -q '"ok"' "$folder/out"; then
        pass
    else
        fault "$1" "$(head -c 300 "$folder/out")"
    fi
}
bad "a line that is no JSON" 'stdin:1:1' 'nonsense'
bad "a line that is cut" 'stdin:1:' '{"do":"store"'
bad "an empty line" 'stdin:1:1' ''
bad "a list" 'must be an object' '[1]'
bad "no order" 'do' '{}'
bad "an unknown order" '$.do' '{"do":"dance"}'
bad "no seq" 'seq' '{"do":"store","client":"c","call":"put","args":{}}'
bad "an unknown member" 'did you mean' '{"do":"store","seq":1,"client":"c","call":"put","arg":{}}'
bad "an unknown call" 'did you mean \"put\"' '{"do":"store","seq":1,"client":"c","call":"putt","args":{}}'
bad "a client that is not there" '$.client' '{"do":"store","seq":1,"client":"d","call":"exist","args":{"keys":["k"]}}'
bad "a setup without a name" 'local_hostname' '{"do":"store","seq":1,"client":"d","call":"setup","args":{}}'
bad "a setup of a size that is none" 'global_segment_size' \
    '{"do":"store","seq":1,"client":"d","call":"setup","args":{"local_hostname":"127.0.0.1","global_segment_size":"50%"}}'
bad "a protocol that is not here" '$.args.protocol' \
    '{"do":"store","seq":1,"client":"d","call":"setup","args":{"local_hostname":"127.0.0.1","protocol":"rdma"}}'
bad_call() { # sentence, text, call, args
    agent "$setup" "$(store "$3" "$4")" '{"do":"start","protocol":1}'
    if grep -F '"seq":2' "$folder/out" | grep -F '"error"' | grep -qF -e "$2" && grep -q '"ok"' "$folder/out"; then
        pass
    else
        fault "$1" "$(head -c 300 "$folder/out")"
    fi
}
bad_call "put without a key" 'key' put '{"value":{"hex":"00"}}'
bad_call "put without a value" 'value' put '{"key":"k"}'
bad_call "a value that is none" '$.args.value' put '{"key":"k","value":{}}'
bad_call "half a hex digit" '$.args.value' put '{"key":"k","value":{"hex":"0"}}'
bad_call "1 GiB" '$.args.value' put '{"key":"k","value":{"fill":1,"bytes":1073741824}}'
bad_call "2^63 bytes" '$.args.value' put '{"key":"k","value":{"fill":1,"bytes":9223372036854775807}}'
bad_call "room of 1 GiB" '$.args.bytes' get '{"key":"k","bytes":1073741824}'
bad_call "1 GiB in sum" '$.args.bytes[2]' batch_get '{"keys":["a","b","c"],"bytes":[268435456,268435456,1]}'
bad_call "more values than keys" '$.args.values' batch_put '{"keys":["a"],"values":[{"hex":"00"},{"hex":"00"}]}'
bad_call "parts of more than the value" '$.args.sizes[0][1]' multi_put '{"keys":["a"],"values":[{"hex":"0000"}],"sizes":[[1,2]]}'
bad_call "a file that is not there" '$.args.value' put '{"key":"k","value":{"file":"none"}}'
bad_call "a key that is none" '$.args.keys[1]' exist '{"keys":["a",5]}'
bad_call "a client set up twice" 'set up already' setup '{"local_hostname":"127.0.0.1","master_server_addr":"'"$address"'"}'

# ---- deaths
head -c 100000 /dev/urandom >"$folder/value"
exits 0 "put before the death" "" "$client" put --master "$address" mortal "$folder/value"
end "$owner_pid" KILL
owner_pid=""
exits 1 "get from an owner that is dead" "TRANSFER_FAIL (-800)" "$client" get --master "$address" mortal "$folder/none"
sleep 3.2 # client_ttl and the master's next look
exits 1 "get when the master has noticed" "OBJECT_NOT_FOUND (-704)" "$client" get --master "$address" mortal "$folder/none"
start_owner --segment 64MiB
exits 0 "put with a new owner" "" "$client" put --master "$address" again "$folder/value"
end "$master_pid" TERM
is "the master ends in order" $? 0
start_master --port "${address##*:}"
tries=0
until timeout 20 "$client" put --master "$address" after "$folder/value" 2>"$folder/err" || [ "$tries" -ge 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
exits 0 "the owner came back to a new master" "" "$client" get --master "$address" after "$folder/back"
if cmp -s "$folder/value" "$folder/back"; then pass; else fault "bytes after the restart" "other bytes"; fi
end "$owner_pid" TERM
is "the owner ends in order" $? 0
owner_pid=""
exits 1 "its memory is given back" "NO_AVAILABLE_HANDLE (-200)" "$client" put --master "$address" k "$folder/value"
end "$master_pid" INT
is "the master ends on SIGINT" $? 0
master_pid=""

# ---- histories
cat >"$folder/check.py" <<'PYTHON'
import json, sys
for path, node, boot in (sys.argv[1], "m", 3), (sys.argv[2], "o", 0):
    records = [json.loads(line) for line in open(path)]
    assert len(records) > 10, path
    for n, record in enumerate(records):
        assert record["n"] == n and record["node"] == record["clock"] == node and record["boot"] == boot, record
    assert all(a["t"] <= b["t"] for a, b in zip(records, records[1:])), path
sent = {r["msg"] for r in map(json.loads, open(sys.argv[2])) if r["kind"] == "send"}
seen = {r["msg"] for r in map(json.loads, open(sys.argv[1])) if r["kind"] == "recv"}
assert len(sent & seen) > 3, "no message of the owner is known to the master"
PYTHON
exits 0 "histories are whole, and their messages meet" "" python3 "$folder/check.py" "$folder/master.history" "$folder/owner.history"

# ---- the control channel
cat >"$folder/control.py" <<'PYTHON'
import json, socket, subprocess, sys
folder, bound = sys.argv[1], 30
live = []

class Node:
    def __init__(self, arm, *command):
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(bound)
        self.lines = self.ours.makefile("r")
        self.say({"arm": arm})
        fd = theirs.fileno()
        self.process = subprocess.Popen([*command, "--control", str(fd)], pass_fds=[fd], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, stdin=subprocess.PIPE)
        live.append(self.process)
        theirs.close()

    def say(self, message):
        self.ours.sendall((json.dumps(message) + "\n").encode())

    def hear(self):
        return json.loads(self.lines.readline())

def row(id, point, **more):
    return {"id": id, "point": point, "kind": None, "what": None, "key": None, "occurrence": 1, **more}

def main():
    client = folder + "/mooncheck-client"
    master = Node([row(1, "before", kind="recv", what="PutStart", key="k*"), row(2, "after", kind="send", what="PutEnd"),
                   row(3, "before", what="ExistKey", kind="recv", occurrence=2)],
                  folder + "/mooncheck-master", "--rpc_address", "127.0.0.1", "--port", "0")
    address = master.hear()["ready"]["address"]
    owner = Node([], client, "owner", "--master", address, "--segment", "64MiB")
    assert "ready" in owner.hear()
    def run(*words):
        process = subprocess.Popen([client, *words, "--master", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        live.append(process)
        return process
    put = run("put", "key", "-")
    put.stdin.write(b"value"), put.stdin.close()
    step = master.hear()["step"]
    assert step["id"] == 1 and step["record"]["what"] == "PutStart" and step["record"]["key"] == "key", step
    assert put.poll() is None
    master.say({"go": 1})
    step = master.hear()["step"]
    assert step["id"] == 2 and step["record"]["kind"] == "send", step
    assert put.wait(bound) == 0  # the answer had left before the node stopped
    assert run("exist", "key").poll() is None  # the master stands still
    master.say({"go": 2})
    assert live[-1].wait(bound) == 0
    exist = run("exist", "key")
    assert master.hear()["step"]["id"] == 3
    master.say({"arm": [row(9, "before", kind="recv", what="Remove")]})
    master.say({"go": 3})
    assert exist.wait(bound) == 0
    removal = run("rm", "--force", "key")
    assert master.hear()["step"]["id"] == 9
    master.process.kill()  # while it is stopped
    assert removal.wait(bound) == 1
    owner.ours.close(), owner.lines.close()  # the supervisor is gone: the owner ends
    assert owner.process.wait(bound) == 0, owner.process.returncode
    bad = Node([row(1, "beside")], folder + "/mooncheck-master", "--port", "0")
    assert bad.process.wait(bound) == 2 and b"$.arm[0].point" in bad.process.stderr.read()

try:
    main()
finally:
    for process in live:
        if process.poll() is None:
            process.kill()
        process.wait()
PYTHON
exits 0 "armed nodes stop and go on" "" python3 "$folder/control.py" "$1"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
