#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds one mutant: applies a patch to copies of the files that it names, compiles those, and links them before the rest.
#
#   usage: conformance/mutants/build.sh PATCH FOLDER COMPILER [FLAG...] -- ADAPTER... -- PROGRAM...
# ADAPTER, PROGRAM: objects, archives and libraries of mooncheck-adapter-example and of mooncheck.
# Makes FOLDER/mooncheck-adapter-example; of a patch with a line "unit: TEST" that unit test, with a line "sim: ..." mooncheck, under
# the same name. Exit 1, with a reason, if the patch does not apply as it stands.
set -eu
patch=$1
folder=$2
shift 2
compile=""
while [ "$1" != -- ]; do
    compile="$compile $1"
    shift
done
shift
fail() {
    echo "mutants: $patch: $1" >&2
    exit 1
}
sources=$(sed -n 's|^+++ b/||p' "$patch")
[ -n "$sources" ] || fail "names no file (a line \"+++ b/FILE\")"
rm -rf "$folder"
mkdir -p "$folder/tree"
for source in $sources; do
    # A changed header would need every file that includes it, and what is not compiled anew would not know.
    case $source in *.c) ;; *) fail "changes $source; only .c files can be changed" ;; esac
    [ -f "$source" ] || fail "changes $source, which is not there"
    cp --parents "$source" "$folder/tree/"
done
patch -s -p1 -N -F1 --no-backup-if-mismatch -r "$folder/rejected" -d "$folder/tree" <"$patch" ||
    fail "no longer applies: make it anew (README.md beside it tells how)"
objects=""
compile_one() { # file to compile, name of its object
    object=$folder/$(echo "$2" | tr / .).o
    $compile -c "$1" -o "$object"
    objects="$objects $object"
}
for source in $sources; do
    compile_one "$folder/tree/$source" "$source"
done
field() { # NAME: the rest of the patch's line "NAME: ..."
    sed -n "/^--- /q; s/^$1: *//p" "$patch"
}
unit=$(field unit)
# Of the two lists the one that this patch needs; a unit test has a main of its own.
list=adapter
for item in "$@"; do
    shift
    case $item in
    --) list=program && continue ;;
    */cli/main.o) [ -z "$unit" ] || continue ;;
    esac
    if { [ -n "$unit" ] || [ -n "$(field sim)" ]; } && [ "$list" = adapter ]; then continue; fi
    if [ -z "$unit" ] && [ -z "$(field sim)" ] && [ "$list" = program ]; then continue; fi
    set -- "$@" "$item"
done
if [ -n "$unit" ]; then
    for source in "$unit.c" ref/base/unit.c; do
        compile_one "$source" "$source"
    done
    set -- "$@" -lcunit
    case $unit in ref/daemon/* | ref/fabric/*) set -- "$@" -luv -libverbs ;; esac
fi
# shellcheck disable=SC2086
$compile $objects -Wl,--start-group "$@" -Wl,--end-group -o "$folder/mooncheck-adapter-example"
rm -rf "$folder/tree" $objects
