#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proves that the harness notices mistakes: every mutant must fail the recorded vectors, under the requirement that its patch names.
#
#   usage: conformance/checks/mutants.sh BUILD [NAME]     NAME: only this one, with the cases that noticed it
# A mutant that passes, and one that crashes, hangs or answers nonsense instead of answering wrongly, is a failure here.
# `catches:` in a patch lists requirements, one of which must be cited by a failing case; `also:` names a case of
# `mooncheck run` that must pass beside it.
set -u
build=$1
patches=conformance/mutants
mooncheck=$build/gcc/mooncheck

field() { # NAME FIELD: the rest of the patch's line "FIELD: ..."
    sed -n "/^--- /q; s/^$2: *//p" "$patches/$1.patch"
}

also_passes() { # CASE: a case of mooncheck run, which needs its own builds and must not be skipped
    timeout -k 5 60 "$mooncheck" run --only "$1" --format tap 2>&1 | grep "^ok .* - $1" | grep -qv '# SKIP'
}

# Prints one line about the mutant $1; 0 if it was noticed.
judge() {
    name=$1
    adapter=$build/mutants/$name/mooncheck-adapter-example
    catches=$(field "$name" catches)
    log=$build/mutants/$name/vectors.tap
    verdict=""
    if [ -z "$catches" ]; then
        verdict="its patch has no line \"catches: REQUIREMENT...\""
    elif [ ! -x "$adapter" ]; then
        verdict="is not built (make check builds it)"
    else
        timeout -k 5 60 "$mooncheck" vectors --target "cmd:exec '$adapter'" --format tap fixtures/vectors >"$log" 2>"$log.err"
        status=$?
        # Failing cases by requirement, and how many ended in another way than a wrong answer.
        counts=$(awk -F'"' '/^  outcome: /{ outcome = $2; if ($2 != "fail") other++ }
            /^  requirement: /{ if (outcome == "fail") failed[$2]++ }
            END { for (r in failed) printf "%s=%d ", r, failed[r]; printf "other=%d", other }' "$log")
        case $counts in *other=0) ;; *) verdict="did not answer wrongly but broke: $counts" ;; esac
        [ "$status" -eq 1 ] || verdict="survived: mooncheck vectors ended with $status"
        cited=""
        for requirement in $catches; do
            case " $counts" in *" $requirement="*) cited="$cited $requirement" ;; esac
        done
        [ -n "$verdict" ] || [ -n "$cited" ] || verdict="was noticed for the wrong reason: ${counts% other=0}, not $catches"
        also=$(field "$name" also)
        if [ -z "$verdict" ] && [ -n "$also" ] && ! also_passes "$also"; then
            verdict="is not noticed by $also"
        fi
    fi
    if [ -n "$verdict" ]; then
        echo "FAILED  $name $verdict"
        return 1
    fi
    printf 'noticed %-28s %s\n' "$name" "${counts% other=0}"
}

if [ $# -gt 1 ]; then
    judge "$2"
    status=$?
    [ -n "${MOONCHECK_MUTANTS_ALL:-}" ] || grep -A 8 '^not ok' "$build/mutants/$2/vectors.tap" | head -40
    exit "$status"
fi
summary=$(for patch in "$patches"/*.patch; do basename "$patch" .patch; done |
    MOONCHECK_MUTANTS_ALL=1 xargs -P 2 -n 1 "$0" "$build" | sort)
echo "$summary"
passed=$(echo "$summary" | grep -c '^noticed ')
failed=$(($(find "$patches" -name '*.patch' | wc -l) - passed))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
