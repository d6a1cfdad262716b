#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs under a folder, uses what is there as a packager would, and removes it again.
#
#   usage: conformance/checks/install.sh BUILD
set -u
build=$1
root=$(pwd)/$build/check/installed
prefix=/usr
rm -rf "$root"
mkdir -p "$root"
# An own make, not one of the make that runs the checks: this is what a packager types.
as_typed() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s BUILD="$build" DESTDIR="$root" PREFIX="$prefix" "$@"; }
as_typed install || exit 1
passed=0
failed=0
check() { # sentence, command...
    what=$1
    shift
    if "$@" >/dev/null 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "install: not so: $what"
    fi
}
check "the program is there and says its version" "$root$prefix/bin/mooncheck" --version
check "the report writer is beside it" test -x "$root$prefix/bin/mooncheck-report"
check "the master is beside it" "$root$prefix/bin/mooncheck" master --version
check "the store client is beside it" "$root$prefix/bin/mooncheck" client --version
check "the man page is there" test -s "$root$prefix/share/man/man1/mooncheck.1"
check "the man page has no lint errors" mandoc -T lint -W error "$root$prefix/share/man/man1/mooncheck.1"
check "bash completion parses" bash -n "$root$prefix/share/bash-completion/completions/mooncheck"
check "pkg-config knows the library" env PKG_CONFIG_PATH="$root$prefix/lib/pkgconfig" pkg-config --exists mooncheck
cat >"$root/use.c" <<'C'
#include <mooncheck/ref/key/profile.h>
int main(void)
{
    return moon_profile_find("vllm-0.33", 0) ? 0 : 1;
}
C
check "a program builds with pkg-config's flags" sh -c "cd '$root' && \${CC:-gcc} -o use use.c \
    \$(PKG_CONFIG_SYSROOT_DIR='$root' PKG_CONFIG_PATH='$root$prefix/lib/pkgconfig' pkg-config --cflags --libs mooncheck)"
check "and runs" "$root/use"
# The plain program links only libc, libcrypto, xxHash and the compression libraries.
extra=$(ldd "$root$prefix/bin/mooncheck" | awk '{ print $1 }' |
    grep -vE '^(linux-vdso|libc|libcrypto|libxxhash|libzstd|libz|libm|libpthread|libdl)\.so|ld-linux')
check "the program links no other library than the documented ones (extra: $extra)" test -z "$extra"
rm -f "$root/use" "$root/use.c"
as_typed uninstall
check "uninstall leaves no file" test -z "$(find "$root" -type f)"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
