#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real vLLM releases beside the reference: each must answer its own recorded vectors, and drawn cases as the reference does.
#
#   usage: conformance/checks/peers.sh BUILD CASES_A_SUITE [SEED]     exit 77 when no release was fetched
set -u
build=$1
cases=$2
seed=${3:-1}
python=$build/deps/venv/bin/python
passed=0
failed=0
found=""
add() { # closing line
    passed=$((passed + $(echo "$1" | sed -n 's/^[^0-9]*\([0-9]*\) passed.*/\1/p')))
    failed=$((failed + $(echo "$1" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')))
}
step() { # title, command...
    title=$1
    shift
    "$@" >"$build/peers.log" 2>&1
    status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$build/peers.log" | tail -1)
    echo "peers: $title: ${line:-no closing line}"
    if [ "$status" -ne 0 ] || [ -z "$line" ]; then
        tail -30 "$build/peers.log"
        failed=$((failed + 1))
        status=1
    fi
    [ -z "$line" ] || add "$line"
}
for version in ${MOONCHECK_RELEASES:-0.30.0 0.33.0}; do
    [ -x "$python" ] && [ -d "$build/deps/vllm/$version" ] || continue
    found=yes
    profile=vllm-$(echo "$version" | cut -d. -f1,2)
    target="cmd:$python conformance/adapters/vllm/adapter.py --sources $build/deps/vllm --release $version"
    step "$version answers its recorded vectors" "$build/gcc/mooncheck" vectors --target "$target" --profile "$profile" fixtures/vectors
    step "$version and the reference on $cases drawn cases a suite" "$build/gcc/mooncheck" vectors --target "$target" \
        --profile "$profile" --draw "$cases" --seed "$seed" --out "$build/drawn"
done
if [ -z "$found" ]; then
    echo "peers: skipped: no vLLM release in $build/deps (run make deps-check)"
    exit 77
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
