#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records the vectors of fetched releases anew and compares with fixtures/vectors, byte for byte.
#
#   usage: conformance/checks/goldens.sh BUILD      exit 77 when no release was fetched
set -u
build=$1
python=$build/deps/venv/bin/python
passed=0
failed=0
for folder in "$build"/deps/vllm/*.*.*; do
    [ -x "$python" ] && [ -d "$folder/vllm" ] || continue
    version=$(basename "$folder")
    if "$python" conformance/adapters/vllm/record.py --sources "$build/deps/vllm" --vectors fixtures/vectors --check "$version"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
if [ $((passed + failed)) -eq 0 ]; then
    echo "goldens: skipped: no vLLM release in $build/deps (run make deps-check)"
    exit 77
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
