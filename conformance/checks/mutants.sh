#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proves that the harness notices mistakes: every mutant must fail the vectors, under a requirement that its patch names.
#
#   usage: conformance/checks/mutants.sh BUILD [NAME]     NAME: only this one, with the cases that noticed it
# A mutant that passes, and one that crashes, hangs or answers nonsense instead of answering wrongly, is a failure here.
# Lines of a patch before its first "---":
#   catches: REQUIREMENT...            one of them must be cited by a failing case; only cases of their suites are asked
#   drawn: SUITE RELEASE COUNT         no recorded case knows; as many drawn ones (seed 1) are asked instead
#   also: CASE                         a case of `mooncheck run` that must pass too
#   unit: TEST                         that unit test must fail, instead of the vectors
#   sim: ARGUMENTS                     that run of mooncheck must fail, instead of the vectors: "swarm SCENARIO --seeds 1..50"
set -u
build=$1
patches=conformance/mutants
mooncheck=$build/gcc/mooncheck

field() { # NAME FIELD: the rest of the patch's line "FIELD: ..."
    sed -n "/^--- /q; s/^$2: *//p" "$patches/$1.patch"
}

# Recorded cases that can cite what the patch names: the vector files of those suites that its requirements have cases in.
vector_files() { # NAME
    awk -v names="$(field "$1" catches)" '
        BEGIN { count = split(names, list); for (i = 1; i <= count; i++) named[list[i]] = 1 }
        /^### / { ours = $2 in named }
        /^- vectors: / && ours { for (i = 3; i <= NF; i++) if (sub(/\..*/, "", $i)) print $i }' conformance/SPEC.md | sort -u |
        while read -r suite; do
            find fixtures/vectors -name "$suite.json.zst" -o -name "$suite-[0-9]*.json.zst"
        done
}

# The run that must fail: by the recorded vectors, or by cases drawn from a seed.
ask() { # NAME
    set -- "$1" "cmd:exec '$build/mutants/$1/mooncheck-adapter-example'" $(field "$1" drawn)
    if [ $# -eq 2 ]; then
        # shellcheck disable=SC2046
        timeout -k 5 60 "$mooncheck" vectors --target "$2" --format tap $(vector_files "$1")
    else
        timeout -k 5 60 "$mooncheck" vectors --target "$2" --format tap --draw "$5" --seed 1 --suite "$3" --profile "$4" \
            --out "$build/mutants/$1/drawn"
    fi
}

also_passes() { # CASE: a case of mooncheck run, which needs its own builds and must not be skipped
    timeout -k 5 60 "$mooncheck" run --only "$1" --format tap 2>&1 | grep "^ok .* - $1" | grep -qv '# SKIP'
}

# Why the log $2 of a run that ended with $3 is no proof for the mutant $1; nothing if it is one. Sets `cited`.
fault() {
    other=$(grep -cE '^  outcome: "(error|crash|timeout)"' "$2")
    failing=$(grep -c '^  outcome: "fail"' "$2")
    catches=$(field "$1" catches)
    cited=""
    for requirement in $catches; do
        cases=$(grep -A 3 '^  outcome: "fail"' "$2" | grep -c "^  requirement: \"$requirement\"")
        [ "$cases" -gt 0 ] && cited="$cited $requirement: $cases"
    done
    also=$(field "$1" also)
    if [ -z "$catches" ]; then
        echo "says nowhere what must notice it: its patch has no line \"catches: REQUIREMENT...\""
    elif [ "$3" -eq 0 ]; then
        echo "survived"
    elif [ "$3" -ne 1 ]; then
        echo "could not be judged, mooncheck vectors ended with $3: $(head -1 "$2.err")"
    elif [ "$other" -gt 0 ]; then
        echo "broke instead of answering wrongly: $other cases ended in an error, a crash or no answer"
    elif [ -z "$cited" ]; then
        echo "was noticed for the wrong reason: none of its $failing failing cases is under $catches"
    elif [ -n "$also" ] && ! also_passes "$also"; then
        echo "is not noticed by $also"
    fi
}

# The same for the log $2 of a unit test: it must fail, not die, for a rule that SPEC.md has. Sets `failing`.
unit_fault() {
    failing=$(sed -n 's/^[^:]*: [0-9]* passed, \([0-9]*\) failed.*/\1/p' "$2" | tail -1)
    cited=" $(field "$1" unit)"
    if [ -z "$(field "$1" catches)" ]; then
        echo "says nowhere what it breaks: its patch has no line \"catches: REQUIREMENT...\""
    elif ! grep -q "^### $(field "$1" catches | cut -d ' ' -f 1) " conformance/SPEC.md; then
        echo "names a requirement that SPEC.md does not have"
    elif [ "$3" -eq 0 ]; then
        echo "survived"
    elif [ "$3" -ne 1 ] || [ "${failing:-0}" -eq 0 ]; then
        echo "broke instead of answering wrongly: the unit test ended with $3"
    fi
}

# The same for the log $2 of a simulated run: it must end with 1, and cite one of the requirements. Sets `cited`, `failing`.
sim_fault() {
    failing=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$2" | tail -1)
    cited=""
    for requirement in $(field "$1" catches); do
        grep -q "$requirement" "$2" && cited="$cited $requirement"
    done
    if [ "$3" -eq 0 ]; then
        echo "survived"
    elif [ "$3" -ne 1 ]; then
        echo "broke instead of answering wrongly: mooncheck $(field "$1" sim) ended with $3"
    elif [ -z "$cited" ]; then
        echo "was noticed for the wrong reason: none of $(field "$1" catches) is cited"
    fi
}

# Prints one line about the mutant $1; 0 if it was noticed.
judge() {
    log=$build/mutants/$1/vectors.tap
    if [ ! -x "$build/mutants/$1/mooncheck-adapter-example" ]; then
        echo "FAILED  $1 is not built"
        return 1
    fi
    if [ -n "$(field "$1" unit)" ]; then
        timeout -k 5 60 "$build/mutants/$1/mooncheck-adapter-example" >"$log" 2>"$log.err"
        unit_fault "$1" "$log" $? >"$log.fault"
    elif [ -n "$(field "$1" sim)" ]; then
        # shellcheck disable=SC2046
        timeout -k 5 60 "$build/mutants/$1/mooncheck-adapter-example" $(field "$1" sim) >"$log" 2>"$log.err"
        sim_fault "$1" "$log" $? >"$log.fault"
    else
        ask "$1" >"$log" 2>"$log.err"
        fault "$1" "$log" $? >"$log.fault"
    fi
    if [ -s "$log.fault" ]; then
        echo "FAILED  $1 $(cat "$log.fault")"
        return 1
    fi
    printf 'noticed %-31s%s, of %d failing cases\n' "$1" "$cited" "$failing"
}

if [ $# -gt 1 ]; then
    judge "$2"
    status=$?
    [ -n "${MOONCHECK_MUTANTS_ALL:-}" ] || grep -A 8 '^not ok' "$build/mutants/$2/vectors.tap" | head -40
    [ -n "${MOONCHECK_MUTANTS_ALL:-}" ] || [ -z "$(field "$2" unit)" ] || head -12 "$build/mutants/$2/vectors.tap.err"
    exit "$status"
fi
summary=$(for patch in "$patches"/*.patch; do basename "$patch" .patch; done |
    MOONCHECK_MUTANTS_ALL=1 xargs -P 2 -n 1 "$0" "$build" | sort)
echo "$summary"
passed=$(echo "$summary" | grep -c '^noticed ')
failed=$(($(find "$patches" -name '*.patch' | wc -l) - passed))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
