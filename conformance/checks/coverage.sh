#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Coverage of the reference by its unit tests and the vectors: at least 95 % of lines and 90 % of branches, few exclusions.
#
#   usage: conformance/checks/coverage.sh BUILD      writes BUILD/coverage/report/{index.html,summary.json,summary.txt}
set -u
build=$1
out=$build/coverage/report
mkdir -p "$out"
find "$build/coverage" -name '*.gcda' -delete
failed=0
conformance/checks/units.sh "$build/coverage" >"$out/units.log" 2>&1 || { tail -30 "$out/units.log"; failed=1; }
"$build/coverage/mooncheck" vectors fixtures/vectors >"$out/vectors.log" 2>&1 || { tail -30 "$out/vectors.log"; failed=1; }
gcovr --root . --object-directory "$build/coverage/obj" --filter 'ref/(base|hash|key|layout|config|connector|engine|wire|store|transfer)/' \
    --exclude '.*_(test|fuzz)\.c' --exclude '.*(_rig|_fake|/net)_internal\.h' --exclude 'ref/base/unit\.c' --exclude-throw-branches \
    --html-details "$out/index.html" --html-self-contained --json-summary "$out/summary.json" --json-summary-pretty \
    --txt "$out/summary.txt" --fail-under-line 95 --fail-under-branch 90 "$build/coverage/obj" >"$out/gcovr.log" 2>&1 || failed=1
grep -E 'error|WARN' "$out/gcovr.log" | head -5
tail -4 "$out/summary.txt"
python3 - "$out/summary.json" <<'P' || failed=1
import json, sys
s = json.load(open(sys.argv[1]))
print("coverage: lines %s %%, branches %s %%" % (s["line_percent"], s["branch_percent"]))
for folder in ("base", "hash", "key", "layout", "config", "connector", "engine", "wire", "store", "transfer"):
    files = [f for f in s["files"] if f["filename"].startswith("ref/%s/" % folder)]
    lines = sum(f["line_total"] for f in files) or 1
    branches = sum(f["branch_total"] for f in files) or 1
    line = 100.0 * sum(f["line_covered"] for f in files) / lines
    branch = 100.0 * sum(f["branch_covered"] for f in files) / branches
    low = "" if line >= 95 and branch >= 90 else "   BELOW 95 / 90"
    print("  ref/%-9s lines %.1f %% of %d, branches %.1f %% of %d%s" % (folder, line, lines, branch, branches, low))
P
marks=$(grep -rnE 'GCOVR_EXCL' ref --include='*.c' --include='*.h' | grep -v _test | wc -l)
lines=$(cat ref/*/*.c | wc -l)
echo "coverage: $marks exclusion marks in $lines lines"
[ $((marks * 200)) -le "$lines" ] || { echo "coverage: more than 0.5 % of lines excluded"; failed=1; }
if grep -rnE 'GCOVR_EXCL[A-Z_]*[[:space:]]*(\*/)?[[:space:]]*$' ref --include='*.c'; then
    echo "coverage: exclusion without a reason"
    failed=1
fi
[ "$failed" -eq 0 ] && echo "1 passed, 0 failed, 0 skipped" || echo "0 passed, 1 failed, 0 skipped"
[ "$failed" -eq 0 ]
