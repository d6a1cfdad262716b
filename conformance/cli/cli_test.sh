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
printf '{"metadata_server":"P2PHANDSHAKE","master_server_address":"h:50051"}' >"$folder/config.json"
sed 's/pool_key/pool_kay/' "$folder/good.json" >"$folder/member.json"
sed 's/"tp_rank":0/"tp_rank":99999999999999999999/' "$folder/good.json" >"$folder/range.json"
if command -v gzip >/dev/null; then
    gzip -c "$folder/good.json" >"$folder/good.json.gz"
    head -c 100 "$folder/good.json.gz" >"$folder/cut.json.gz"
    gzip -c "$folder/huge.json" >"$folder/bomb.json.gz"
fi

# ---- every reader of a file
for reader in "vectors" "report" "hash --json" "key --json" "layout --json" "vectors --known FILE $folder/good.json" \
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
    vectors | report) ;; # they take folders
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

# ---- usage
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
    "hash --help"; do
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
