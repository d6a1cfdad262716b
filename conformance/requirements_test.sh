#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The generator of the requirements table refuses every kind of malformed block, and says where.
#
#   usage: conformance/requirements_test.sh      exit 0 or 1; closing line "N passed, N failed, 0 skipped"
set -u
cd "$(dirname "$0")" || exit 2
passed=0
failed=0
spec=$(mktemp) || exit 2
trap 'rm -f "$spec"' EXIT

block() { # id, level, title, provenance, vectors
    printf '### %s %s %s\n- profiles: all\n- provenance: %s\n- source: somewhere\n- vectors: %s\n\nA rule.\n\n' "$1" "$2" "$3" "$4" "$5"
}
good() { block HASH-001 '(MUST)' 'One "rule" with \ and %d' 'all releases measured' 'hash.a hash.*.b'; }

refuses() { # sentence, text; the specification is in $spec
    if output=$("${AWK:-awk}" -f requirements.awk "$spec" 2>&1 >/dev/null); then
        echo "requirements: FAILED: $1: it was accepted"
        failed=$((failed + 1))
    elif ! echo "$output" | grep -qF -e "$2"; then
        echo "requirements: FAILED: $1: it says \"$output\", not \"$2\""
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

{ good; good; } >"$spec"
refuses "an id that is used twice" "HASH-001: already used in line 1"
block HASH-1 '(MUST)' T documented hash.a >"$spec"
refuses "a malformed id" '"HASH-1" is no requirement id'
block HASH-001 '(WILL)' T documented hash.a >"$spec"
refuses "an unknown level" 'level "(WILL)" is none of'
block HASH-001 MUST T documented hash.a >"$spec"
refuses "a level without parentheses" 'level "MUST" is none of'
block HASH-001 '(MUST)' '' documented hash.a >"$spec"
refuses "no title" "has no title"
block HASH-001 '(MUST)' T 'one release measured' hash.a >"$spec"
refuses "a MUST that was measured once" "a MUST needs the provenance"
block HASH-001 '(MUST)' T ours hash.a >"$spec"
refuses "a MUST of ours" "a MUST needs the provenance"
block HASH-001 '(SHOULD)' T rumour hash.a >"$spec"
refuses "an unknown provenance" 'provenance "rumour" is none of'
block HASH-001 '(SHOULD)' T ours 'hash.a, hash.b' >"$spec"
refuses "a glob with a comma" '"hash.a," is no glob'
block HASH-001 '(SHOULD)' T ours '' >"$spec"
refuses "a line without a value" 'the line "- vectors:" is empty'
good | sed 's/^- profiles: all/- profiles: vllm-0.24 and later/' >"$spec"
refuses "profiles in free words" 'profiles "vllm-0.24 and later" is none of'
good | sed 's/^- profiles: all/- profiles: mooncake-0.4.1/' >"$spec"
refuses "a Mooncake release of another line" 'profiles "mooncake-0.4.1" is none of'
good | grep -v '^- source' >"$spec"
refuses "a missing line" 'the line "- source:" is missing'
good | grep -v '^A rule' >"$spec"
refuses "no text" "has no text"
good | sed '/^- source/p' >"$spec"
refuses "a line that is there twice" 'the line "- source:" is there twice'
echo "# Nothing" >"$spec"
refuses "no requirement at all" "holds no requirement"

# What is accepted compiles, and keeps every character of the title.
if good | "${AWK:-awk}" -f requirements.awk - | grep -qF 'One \"rule\" with \\ and %d'; then
    passed=$((passed + 1))
else
    echo "requirements: FAILED: a good block is accepted and quoted"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
