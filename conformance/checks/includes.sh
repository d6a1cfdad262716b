#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reads the include graph: each folder may include only what its layer allows, and every public header compiles alone.
#
#   usage: conformance/checks/includes.sh [ROOT]      exit 0 or 1; closing line "N passed, N failed, 0 skipped"
set -u
cd "${1:-.}" || exit 2
passed=0
failed=0

# Folder -> folders whose headers it may include (its own is always allowed).
allowed() {
    case $1 in
    ref/base) echo "" ;;
    ref/key) echo "ref/base" ;;
    ref/hash | ref/layout) echo "ref/base ref/key" ;;
    ref/config) echo "ref/base ref/key ref/hash ref/layout" ;;
    ref/wire) echo "ref/base" ;;
    ref/fabric) echo "ref/base" ;;
    ref/connector | ref/transfer) echo "ref/base ref/key ref/hash ref/layout ref/config ref/wire" ;;
    ref/store) echo "ref/base ref/key ref/hash ref/layout ref/config ref/wire ref/transfer" ;;
    ref/engine) echo "ref/base ref/key ref/hash ref/layout ref/config ref/wire ref/connector ref/store ref/transfer" ;;
    reports) echo "ref/base" ;;
    ref/daemon | ref/capi) echo "ref/*" ;;
    sim) echo "ref/base ref/key ref/hash ref/layout ref/config ref/wire ref/connector ref/store ref/transfer ref/engine" ;;
    conformance*) echo "ref/* conformance* reports sim" ;;
    *) echo "unknown" ;;
    esac
}

permits() { # folder of the includer, folder of the header, the includer
    [ "$1" = "$2" ] && return 0
    # Unit tests of state machines on streams run them over the memory fabric.
    case $2:$3 in ref/fabric:ref/store/*_test.c | ref/fabric:ref/transfer/*_test.c) return 0 ;; esac
    for pattern in $(allowed "$1"); do
        # shellcheck disable=SC2254
        case $2 in $pattern) return 0 ;; esac
    done
    return 1
}

set -f
files=$(git ls-files -co --exclude-standard '*.c' '*.h' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
for file in $files; do
    folder=$(dirname "$file")
    bad=""
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
        if [ ! -f "$header" ]; then
            bad="$bad $header(not found from the root)"
        elif ! permits "$folder" "$(dirname "$header")" "$file"; then
            bad="$bad $header"
        fi
    done
    # Only daemons, the C ABI and the fabric may touch clocks, threads, sockets and event libraries.
    case $folder in
    ref/daemon | ref/capi | ref/fabric) ;;
    ref/*)
        for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file"); do
            case $header in
            time.h | sys/time.h | pthread.h | threads.h | sys/socket.h | netinet/* | uv.h | zmq.h | unistd.h | poll.h | curl/*)
                bad="$bad <$header>"
                ;;
            esac
        done
        ;;
    esac
    if [ -n "$bad" ]; then
        echo "includes: $file may not include:$bad"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done

for header in $(echo "$files" | grep '\.h$'); do
    if printf '#include "%s"\n' "$header" | ${CC:-gcc} -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only -x c - 2>build/includes.log; then
        passed=$((passed + 1))
    else
        echo "includes: $header does not compile on its own:"
        sed 's/^/    /' build/includes.log | head -5
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
