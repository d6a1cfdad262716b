#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static checks of the C code and the scripts: clang-format, clang-tidy, cppcheck, sh -n.
#
#   usage: conformance/checks/lint.sh [BUILD]      exit 0 or 1; closing line counts files a tool
set -u
build=${1:-build}
mkdir -p "$build/lint"
passed=0
failed=0
sources=$(git ls-files -co --exclude-standard '*.c' '*.h' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
units=$(echo "$sources" | grep '\.c$')
judge() { # title, status, log
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "lint: $1 complains:"
        head -40 "$3"
    fi
}

clang-format --dry-run -Werror $sources >"$build/lint/format.log" 2>&1
judge clang-format $? "$build/lint/format.log"

# A file is looked at again only when it, a header or the rules changed since it was last found clean.
newest=$(ls -t $(echo "$sources" | grep '\.h$') .clang-tidy | head -1)
stale=$(for f in $(echo "$units" | grep -vE '_(test|fuzz)\.c$'); do
    stamp=$build/lint/tidy/$f.ok
    [ -f "$stamp" ] && [ "$stamp" -nt "$f" ] && [ "$stamp" -nt "$newest" ] || echo "$f"
done)
if [ -n "$stale" ]; then
    echo "$stale" | xargs -P 2 -I{} sh -c 'mkdir -p "'"$build"'/lint/tidy/$(dirname {})" &&
        clang-tidy --quiet --warnings-as-errors="*" {} -- -std=c11 -I. -D_GNU_SOURCE >"'"$build"'/lint/tidy/{}.log" 2>&1 &&
        touch "'"$build"'/lint/tidy/{}.ok" || { cat "'"$build"'/lint/tidy/{}.log"; exit 1; }' >"$build/lint/tidy.log" 2>&1
    status=$?
else
    status=0
    : >"$build/lint/tidy.log"
fi
judge clang-tidy $status "$build/lint/tidy.log"

cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr -j 2 \
    --suppress=missingIncludeSystem --suppress=uninitvar:*/unit.c -I. -D_GNU_SOURCE --cppcheck-build-dir="$build/lint" \
    $units >"$build/lint/cppcheck.log" 2>&1
judge cppcheck $? "$build/lint/cppcheck.log"

for script in $(git ls-files -co --exclude-standard '*.sh' .ci/run); do
    sh -n "$script" 2>"$build/lint/sh.log"
    judge "sh -n $script" $? "$build/lint/sh.log"
done
for script in $(git ls-files -co --exclude-standard '*.py'); do
    python3 -c 'import ast,sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$script" 2>"$build/lint/py.log"
    judge "python $script" $? "$build/lint/py.log"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
