#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rules of the tree itself: licence lines, sizes, layout, and no word that ties it to one machine.
#
#   usage: conformance/checks/tidy_tree.sh [ROOT]     exit 0 or 1; closing line "N passed, N failed, 0 skipped"
set -u
cd "${1:-.}" || exit 2
passed=0
failed=0
check() { # title, offending lines ("" is good)
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\n' "tree: $1:" "$2" | sed '2,$s/^/    /' | head -12
    fi
}
files=$(git ls-files -co --exclude-standard | while read -r f; do [ -f "$f" ] && echo "$f"; done)

check "no SPDX line in the first two lines" "$(echo "$files" |
    grep -E '\.(c|h|py|sh|awk)$|^Makefile$|^\.ci/run$' | while read -r f; do head -2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"; done)"
check "top-level entry beyond the agreed layout" "$(echo "$files" | cut -d/ -f1 | sort -u |
    grep -vxE 'Makefile|ref|sim|scenarios|conformance|fixtures|reports|README\.md|LICENSE|NOTICE|\..*')"
check "file over 2 MB outside fixtures" "$(echo "$files" | grep -v '^fixtures/' | while read -r f; do
    [ "$(wc -c <"$f")" -gt 2000000 ] && echo "$f"; done)"
check "fixtures over 25 MB" "$(du -sk fixtures | awk '$1 > 25000 { print }')"
# The pattern is put together so that this file does not match itself.
check "mark of unfinished work" "$(echo "$files" | grep -E '\.(c|h|py|sh|awk)$' | xargs grep -nE '(//|/\*|^ \*|^#) ?(TO''DO|FIX''ME|X''XX)' | head)"
check "path of one machine" "$(echo "$files" | grep -vE '^fixtures/' | xargs grep -nIE '/wo''rk/|/ro''ot/|/ho''me/[a-z]' | head)"
check "source file over 900 lines" "$(echo "$files" | grep -E '\.(c|h|py|sh)$' | xargs wc -l | awk '$1 > 900 && $2 != "total"')"
check "test file that asserts nothing" "$(echo "$files" | grep '_test\.c$' | while read -r f; do
    grep -qE 'CU_ASSERT|MOON_CHECK' "$f" || echo "$f"; done)"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
