#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bad input and bad output: every command says what is wrong in one clear line, exits 2 and leaves no file behind.
#
#   usage: conformance/cli/cli_test.sh MOONCHECK      exit 0 or 1; closing line "N passed, N failed, N skipped"
set -u
mooncheck=$1
passed=0
failed=0
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 2' INT TERM HUP

fault() { # sentence, what is wrong
    echo "cli: FAILED: $1: $2"
    sed 's/^/    /' "$folder/err" 2>/dev/null | head -5
    failed=$((failed + 1))
}

# The command in "$@" must exit 2 with nothing on stdout and one line on stderr that holds the text.
refuses() { # sentence, text, command...
    sentence=$1
    text=$2
    shift 2
    timeout 60 "$@" >"$folder/out" 2>"$folder/err" </dev/null
    judge "$sentence" "$text" $?
}

judge() { # sentence, text, exit status
    if [ "$3" -ne 2 ]; then
        fault "$1" "exit status $3, not 2"
    elif [ -s "$folder/out" ]; then
        fault "$1" "something was printed on stdout"
    elif [ "$(wc -l <"$folder/err")" -ne 1 ]; then
        fault "$1" "$(wc -l <"$folder/err") lines on stderr, not 1"
    elif ! grep -q '^mooncheck: ' "$folder/err" || ! grep -qF -e "$2" "$folder/err"; then
        fault "$1" "the message does not say \"$2\""
    else
        passed=$((passed + 1))
    fi
}

ok() { # sentence, command... must exit 0
    sentence=$1
    shift
    if timeout 60 "$@" >"$folder/out" 2>"$folder/err" </dev/null; then
        passed=$((passed + 1))
    else
        fault "$sentence" "exit status $?, not 0"
    fi
}

# ---- inputs, each bad in one way
cat >"$folder/good.json" <<'EOF'
{"schema":"mooncheck-vectors/1","suite":"keys","source":[],"cases":[
{"id":"keys.pool.a.1","profile":"vllm-0.33","given":{"op":"pool_key","metadata":{"model_name":"m","tp_rank":0,"pcp_rank":0,
"dcp_rank":0,"pp_rank":0,"group_id":0,"cache_prefix":"","store_namespace":""},"chunk_hash":"ab"},
"expect":{"key":"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@ab","prefix":"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0"}}]}
EOF
cut_bytes=$(($(wc -c <"$folder/good.json") - 40))
head -c "$cut_bytes" "$folder/good.json" >"$folder/truncated.json"
: >"$folder/empty.json"
printf '{"a":"\377\376"}' >"$folder/nonutf8.json"
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; }' >"$folder/deep.json"
printf '{"a":1,"a":2}' >"$folder/duplicate.json"
printf '{"a":1} x' >"$folder/trailing.json"
printf '\357\273\277{}' >"$folder/bom.json"
printf '{"a":01}' >"$folder/number.json"
head -c 270000000 /dev/zero | tr '\0' ' ' >"$folder/huge.json"
mkdir "$folder/folder"
printf '{"profile":"vllm-0.33","model":"m","kv":{"heads":8}}' >"$folder/side.json"
printf '{"schema":"mooncheck-scenario/1"}' >"$folder/side2.json"
printf '{"metadata_server":"P2PHANDSHAKE","master_server_address":"h:50051"}' >"$folder/config.json"
sed 's/pool_key/pool_kay/' "$folder/good.json" >"$folder/member.json"
sed 's/"tp_rank":0/"tp_rank":99999999999999999999/' "$folder/good.json" >"$folder/range.json"
if command -v gzip >/dev/null; then
    gzip -c "$folder/good.json" >"$folder/good.json.gz"
    head -c 100 "$folder/good.json.gz" >"$folder/cut.json.gz"
    gzip -c "$folder/huge.json" >"$folder/bomb.json.gz"
fi

# ---- every reader of a file
for reader in "sim" "run" "swarm" "vectors" "report" "hash --json" "key --json" "layout --json" "plan --json" "vectors --known FILE $folder/good.json" \
    "compat FILE $folder/side.json" "compat $folder/side.json FILE"; do
    for case in "truncated:json:" "empty:json:" "nonutf8:json:1:" "deep:json:1:" "duplicate:json:1:" "trailing:json:1:" "bom:json:1:" \
        "number:json:1:" "missing:json: cannot open: No such file" "huge:json: holds more than the limit"; do
        name=${case%%:*}
        text=${case#*:}
        [ "$name" = huge ] && [ "$reader" != vectors ] && continue # once is enough: it takes a second
        case $reader in
        *FILE*) command=$(echo "$reader" | sed "s|FILE|$folder/$name.json|") ;;
        *) command="$reader $folder/$name.json" ;;
        esac
        # shellcheck disable=SC2086
        refuses "$command" "$name.$text" "$mooncheck" $command
    done
    case $reader in
    vectors | report | run | swarm) ;; # they take folders
    # shellcheck disable=SC2086,SC2046
    *FILE*) refuses "$reader with a folder" "is a directory" "$mooncheck" $(echo "$reader" | sed "s|FILE|$folder/folder|") ;;
    # shellcheck disable=SC2086
    *) refuses "$reader with a folder" "is a directory" "$mooncheck" $reader "$folder/folder" ;;
    esac
done
# lint prints what it found; a file that is no JSON could not be checked, which is one line on stderr and status 2.
for name in truncated empty nonutf8 trailing bom number; do
    timeout 60 "$mooncheck" lint "$folder/$name.json" >"$folder/found" 2>"$folder/err"
    status=$?
    : >"$folder/out"
    judge "lint $name.json" "$name.json:" "$status"
    grep -q 'LINT-001' "$folder/found" || fault "lint $name.json" "no finding LINT-001"
done
for case in "deep:deep.json" "missing:cannot open: No such file" "folder:is a directory"; do
    name=${case%%:*}
    [ "$name" = folder ] || name=$name.json
    refuses "lint $name" "${case#*:}" "$mooncheck" lint "$folder/$name"
done
refuses "report of a folder without results" "results.json: cannot open" "$mooncheck" report "$folder/folder"
refuses "a vector file with a wrong member" 'did you mean "pool_key"? (case keys.pool.a.1)' "$mooncheck" vectors "$folder/member.json"
refuses "an empty line of standard input" "stdin:1:" "$mooncheck" vectors -
if [ -f "$folder/cut.json.gz" ]; then
    refuses "packed data that is cut" "gzip data ends in the middle" "$mooncheck" vectors "$folder/cut.json.gz"
    refuses "packed data that grows without bound" "unpacks to more than the limit" "$mooncheck" vectors "$folder/bomb.json.gz"
fi
printf '{"profile":"vllm-0.33","given":' | timeout 60 "$mooncheck" key --json - >"$folder/out" 2>"$folder/err"
judge "key from a pipe that ends in the middle" "stdin:1:" $?
printf '{"profile":"vllm-0.33","given":{"op":"chunk_keys","block_size":99999999999999999999}}' |
    timeout 60 "$mooncheck" key --json - >"$folder/out" 2>"$folder/err"
judge "a number out of range" "stdin:1:" $?
printf '{"profile":"vllm-0.99","given":{}}' | timeout 60 "$mooncheck" hash --json - >"$folder/out" 2>"$folder/err"
judge "an unknown release" "profile" $?

# ---- questions to the connector: each is bad in one way, and the message names the member
hashes='"block_hashes":["aa","ab","ac"]'
printf '{"profile":"vllm-0.33","given":{"num_tokens":40,%s,"existing_keys":[]}}' "$hashes" >"$folder/plan.json"
plan() { # suite, text, given
    printf '{"suite":"%s","profile":"vllm-0.33","given":%s}' "$1" "$3" >"$folder/question.json"
    refuses "plan $1 $3" "$2" "$mooncheck" plan --json "$folder/question.json"
}
for suite in lookup save load lookup-async save-lcm; do
    plan $suite '$.given.topology' '{"topology":{"tp":4,"dcp":3}}'
    plan $suite '$.given.topology.tp' '{"topology":{"tp":0}}'
    plan $suite '$.given.topology.tp' '{"topology":{"tp":99999999999999999999}}'
    plan $suite '$.given.topology.tp: must be integer' '{"topology":{"tp":"4"}}'
    plan $suite '$.given.topology' '{"topology":{"tp":65536,"pp":65536}}'
    plan $suite 'did you mean "tp"' '{"topology":{"tq":4}}'
    plan $suite '$.given.total_kv_heads' '{"total_kv_heads":0}'
    plan $suite '$.given.groups' '{"groups":[]}'
    plan $suite '$.given.groups[0].kind' '{"groups":[{"kind":"fulll","block_size":16}]}'
    plan $suite '$.given.groups[0].block_size' '{"groups":[{"kind":"full","block_size":0}]}'
    plan $suite '$.given.groups[0].block_size' '{"groups":[{"kind":"full","block_size":9007199254740993}]}'
    plan $suite '$.given.groups[0]' '{"groups":[{"kind":"sliding_window","block_size":16}]}'
    plan $suite 'the least common multiple' '{"groups":[{"kind":"full","block_size":48},{"kind":"mamba","block_size":1048573},
        {"kind":"mamba","block_size":1048571},{"kind":"mamba","block_size":1048561}]}'
    plan $suite '$.given.kv_role' '{"kv_role":"kv_all"}'
done
request="\"requests\":{\"r\":{\"prompt_len\":40,$hashes}}"
step() { echo "{$request,\"steps\":[$1]}"; } # one step
new() { step "{\"new\":[{\"req\":\"r\",\"num_computed\":0,\"num_scheduled\":40,\"block_ids\":$1}]$2}"; } # table, more members
plan save '100 scheduled' "$(step '{"new":[{"req":"r","num_computed":0,"num_scheduled":100,"block_ids":[[1]]}]}')"
plan save 'num_scheduled' "$(step '{"new":[{"req":"r","num_computed":0,"num_scheduled":9223372036854775807,"block_ids":[[1]]}]}')"
plan save 'num_computed' "$(step '{"new":[{"req":"r","num_computed":-5,"num_scheduled":40,"block_ids":[[1,2,3]]}]}')"
plan save 'there is no request "q"' "$(step '{"new":[{"req":"q","num_computed":0,"num_scheduled":40,"block_ids":[[1,2,3]]}]}')"
plan save 'not running' "$(step '{"cached":[{"req":"r","num_computed":0,"num_scheduled":40,"new_block_ids":[[1,2,3]]}]}')"
plan save 'preempted[0]' "$(step '{"preempted":["q"]}')"
plan save 'too few' "$(new '[[1]]' '')"
plan save 'block_ids[0][0]' "$(new '[[-1,2,3]]' '')"
plan save 'block_ids: 2 lists of blocks for 1 groups' "$(new '[[1,2,3],[4]]' '')"
plan save 'boundary_offloads.r[0][0]: there is no group 5' "$(new '[[1,2,3]]' ',"boundary_offloads":{"r":[[5,1,16]]}')"
plan save 'output_tokens.r' "$(new '[[1,2,3]]' ',"output_tokens":{"r":1000000000000}')"
plan save 'block_hashes: 2 block hashes are needed' '{"requests":{"r":{"prompt_len":40,"block_hashes":["aa"]}},"steps":[]}'
plan save 'block_hashes[1]' '{"requests":{"r":{"prompt_len":40,"block_hashes":["aa","abcd"]}},"steps":[]}'
plan save 'prompt_len' '{"requests":{"r":{"prompt_len":4611686018427387904,"block_hashes":[]}}}'
plan save 'put_results.k: must be integer, is string' '{"put_results":{"k":"x"}}'
plan save 'existing_keys[0]: must be string' '{"existing_keys":[1]}'
plan lookup 'block_hashes' '{"num_tokens":40,"block_hashes":["aa"]}'
plan lookup 'exist_result_override.k: must be integer' "{\"num_tokens\":40,$hashes,\"exist_result_override\":{\"k\":\"yes\"}}"
plan lookup 'exist_result_override.k: must be integer' "{\"num_tokens\":40,$hashes,\"exist_result_override\":{\"k\":1.5}}"
plan lookup 'exist_raises: must be boolean' "{\"num_tokens\":40,$hashes,\"exist_raises\":1}"
plan lookup 'num_tokens' "{\"num_tokens\":9223372036854775807,$hashes}"
plan lookup 'num_computed_tokens' "{\"num_tokens\":40,\"num_computed_tokens\":41,$hashes}"
loads="\"num_tokens\":40,$hashes,\"hit_tokens_in_store\":32"
plan load 'block_ids: group 0 has no block for tokens 16 to 32' "{$loads,\"block_ids\":[[1]]}"
plan load 'block_ids: 2 block tables for 1 groups' "{$loads,\"block_ids\":[[1,2],[3]]}"
plan load 'block_ids[0][1]' "{$loads,\"block_ids\":[[1,99999]]}"
plan load 'get_results.k: must be integer' "{$loads,\"get_results\":{\"k\":\"x\"}}"
plan load 'get_raises_on_call' "{$loads,\"get_raises_on_call\":-3}"
plan load 'page_bytes' "{$loads,\"page_bytes\":9007199254740992}"
plan lookup-async 'prompt.mod' '{"steps":[[{"add":"r","prompt":{"start":0,"step":1,"mod":0,"count":40},"max_tokens":1}]]}'
plan lookup-async 'prompt.count' '{"steps":[[{"add":"r","prompt":{"start":0,"step":1,"mod":9,"count":4000000000},"max_tokens":1}]]}'
plan lookup-async 'abort: no request "q"' '{"steps":[[{"abort":"q"}]]}'
plan save-lcm 'num_steps' '{"prompt":{"start":0,"step":1,"mod":9,"count":40},"max_tokens":4,"num_steps":100000000}'
plan save-lcm '"prompt" is missing' '{"max_tokens":4}'
plan daemon 'is none of: lookup, save, load, lookup-async, save-lcm' '{}'
printf '{"profile":"vllm-0.33","given":{"num_tokens":40,%s}}' "$hashes" >"$folder/question.json"
refuses "a question that two suites take" "is a question of lookup or load" "$mooncheck" plan --json "$folder/question.json"
printf '{"profile":"vllm-0.33","given":{"num_tokens":40,"steps":[]}}' >"$folder/question.json"
refuses "a question that no suite takes" "steps: no suite of the connector" "$mooncheck" plan --json "$folder/question.json"

# ---- captured streams
refuses "wire without a task" "needs at least" "$mooncheck" wire
refuses "wire with an unknown task" "wire dekode is none of" "$mooncheck" wire dekode README.md
refuses "an empty stream" "the stream is empty" "$mooncheck" wire decode /dev/null
refuses "a stream of an unknown kind" "--kind x is none of" "$mooncheck" wire decode --kind x README.md
refuses "a stream that is text" "no frame is known" "$mooncheck" wire decode README.md
refuses "recorded messages of another kind" '"schema" is not "mooncheck-wire/1"' "$mooncheck" wire check fixtures/vectors/config.json.zst

# ---- scenarios
sed 's/"id": "miss"/"id": "absent"/' scenarios/put-get.json >"$folder/scenario.json"
refuses "a scenario with an id twice" "\"absent\" is there already" "$mooncheck" sim "$folder/scenario.json"
refuses "a scenario that is none" 'member "id" is missing' "$mooncheck" run "$folder/side2.json"
refuses "a folder without scenarios" "holds no scenario" "$mooncheck" run "$folder/folder"
refuses "a world that does not exist" "world" "$mooncheck" run --world rx
refuses "a foreign client in a simulation" "go with --world tcp" "$mooncheck" run --world sim --client cmd:x
refuses "a foreign client that is no command" "must be cmd:COMMAND" "$mooncheck" run --world tcp --client x
refuses "a foreign master without a port" "must be wire:HOST:PORT" "$mooncheck" run --world tcp --target wire:x
refuses "seeds in the wrong order" "--seeds must be A..B" "$mooncheck" swarm --seeds 9..1
refuses "a swarm's file that is none" "is no file of a swarm" "$mooncheck" swarm --seeds 1..2 --resume README.md scenarios/put-get.json
refuses "a simulation of nothing" "needs SCENARIO" "$mooncheck" sim

# ---- usage
refuses "a plan of nothing" "needs --prompt N" "$mooncheck" plan
refuses "a plan with two questions" "holds the whole question" "$mooncheck" plan --json "$folder/plan.json" --tp 2
refuses "a plan with a mode that does not exist" "mode" "$mooncheck" plan --prompt 40 --mode right
refuses "a plan with an option that is no JSON" "--store-tp-size:1:" "$mooncheck" plan --prompt 40 --store-tp-size four
refuses "a plan that has more locally than it asks for" "--local must be below" "$mooncheck" plan --prompt 40 --local 40
refuses "decoding of a lookup" "go with --ask save" "$mooncheck" plan --ask lookup --prompt 40 --decode 3
refuses "two lists at once" "are two lists" "$mooncheck" list --deviations --by-requirement
refuses "a measurement that does not exist" "there are: hash, connector" "$mooncheck" bench store
refuses "a measurement of a release without shards" "no store shards" "$mooncheck" bench connector --release 0.24
refuses "no command" "needs a command" "$mooncheck"
refuses "an unknown command" 'did you mean "vectors"?' "$mooncheck" vector
refuses "an unknown option" 'did you mean' "$mooncheck" vectors --taget ref "$folder/good.json"
refuses "an abbreviated option" "--targ" "$mooncheck" vectors --targ ref "$folder/good.json"
refuses "an option without its value" "--target" "$mooncheck" vectors "$folder/good.json" --target
refuses "no files" "needs vector files" "$mooncheck" vectors
refuses "a number that is none" "limit" "$mooncheck" vectors --limit x "$folder/good.json"
refuses "a form that does not exist" "format" "$mooncheck" vectors --format xml "$folder/good.json"
refuses "an unknown release on the command line" "vllm-0.99" "$mooncheck" vectors --profile vllm-0.99 "$folder/good.json"
refuses "a target that does not exist" "none of: ref, cmd:COMMAND" "$mooncheck" vectors --target lib:x "$folder/good.json"
refuses "an adapter that does not start" "exit status 127" "$mooncheck" vectors --target cmd:no-such-program-here "$folder/good.json"
refuses "drawing without a release" "needs --profile" "$mooncheck" vectors --draw 3 --target cmd:x
refuses "drawing against the reference itself" "needs a --target" "$mooncheck" vectors --draw 3 --profile vllm-0.33
refuses "drawing an unknown suite" "there is no suite" "$mooncheck" vectors --draw 3 --profile vllm-0.33 --suite no \
    --target "cmd:read -r l; echo '{\"ok\":{\"name\":\"x\",\"version\":\"\",\"homepage\":\"\",\"profiles\":[],\"suites\":[],\"store\":false}}'; read -r l"

# ---- outputs
for command in "--help" "--version" "man" "completion" "vectors --help" "list" "list --json" "list --by-requirement" \
    "vectors $folder/good.json" "vectors --json $folder/good.json" "vectors --format junit $folder/good.json" \
    "vectors --format tap $folder/good.json" "hash --tokens 0..31" "hash --tokens 0..31 --explain" "key --model m --hash ab" \
    "layout --tp 2 --kv-heads 8" "compat $folder/side.json $folder/side.json" "lint $folder/config.json" "lint --explain all" \
    "hash --help" "plan --help" "plan --prompt 40 --decode 3" "plan --prompt 40 --stored 32 --ask load" \
    "plan --prompt 40 --stored 32 --ask lookup --question" "plan --json $folder/plan.json" \
    "plan --json $folder/plan.json --explain" "vectors --mode strict $folder/good.json" "list --deviations" \
    "list --deviations --json" "sim scenarios/put-get.json" "sim scenarios/store-mix.json --explain --twice" \
    "run --world mem scenarios/writer-dies.json" "swarm --seeds 1..2 scenarios/owner-restart.json" "swarm --help"; do
    # shellcheck disable=SC2086
    ok "$command" "$mooncheck" $command
    # shellcheck disable=SC2086
    timeout 60 "$mooncheck" $command >/dev/full 2>"$folder/err"
    status=$?
    : >"$folder/out"
    judge "$command on a full disk" "No space left on device" "$status"
    # shellcheck disable=SC2086
    (timeout 60 "$mooncheck" $command >&- 2>"$folder/err"; echo $? >"$folder/status")
    judge "$command with standard output closed" "stdout: cannot write" "$(cat "$folder/status")"
    # shellcheck disable=SC2086
    { sleep 0.2; timeout 60 "$mooncheck" $command 2>"$folder/err"; echo $? >"$folder/status"; } | true
    judge "$command into a pipe that nobody reads" "Broken pipe" "$(cat "$folder/status")"
done
ok "a run that writes reports" "$mooncheck" vectors --out "$folder/report/deep" "$folder/good.json"
for file in results.json index.html results.tap junit.xml terminal.txt closing.txt; do
    ok "the report $file" test -s "$folder/report/deep/$file"
done
ok "a page of reports" "$mooncheck" report --html "$folder/page.html" "$folder/report/deep" "$folder/report/deep/results.json"
refuses "a report folder under a file" "cannot make the folder" "$mooncheck" vectors --out "$folder/good.json/x" "$folder/good.json"
refuses "a page in a folder that does not exist" "cannot write in this folder" "$mooncheck" report --html "$folder/no/page.html" "$folder/report/deep"
refuses "a page over a folder" "is a directory" "$mooncheck" report --html "$folder/folder" "$folder/report/deep"
refuses "a page on a full disk" "No space left" "$mooncheck" report --html /dev/full "$folder/report/deep"

# An interrupted run ends its adapter and leaves no folder.
mkdir "$folder/tmp"
TMPDIR=$folder/tmp "$mooncheck" vectors --target "cmd:echo \$\$ >$folder/pid; exec sleep 60" "$folder/good.json" >/dev/null 2>&1 &
run=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$folder/pid" ] && break
    sleep 0.1
done
kill -TERM "$run"
wait "$run" 2>/dev/null
ok "an interrupted run leaves no folder" test -z "$(ls "$folder/tmp")"
# Dead, or a zombie where process 1 does not collect orphans.
runs() { grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$(cat "$folder/pid")/status" 2>/dev/null; }
for _ in 1 2 3 4 5; do runs && sleep 0.2; done
if runs; then fault "an interrupted run ends its adapter" "it still runs"; else passed=$((passed + 1)); fi

# A limit on file sizes stands for a disk that fills up in the middle of a file.
(ulimit -f 1; trap '' XFSZ; timeout 60 "$mooncheck" vectors --out "$folder/limited" "$folder/good.json" >"$folder/out" 2>"$folder/err"; echo $? >"$folder/status")
: >"$folder/out"
judge "a report that does not fit" "cannot write" "$(cat "$folder/status")"
for file in "$folder"/limited/*; do
    [ ! -e "$file" ] || fault "nothing stays of a report that does not fit" "$file"
done

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
