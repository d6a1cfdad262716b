#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks at what `make install` put under DESTDIR and uses it as a packager would.
#
#   usage: conformance/checks/install.sh DESTDIR PREFIX
set -u
root=$1
prefix=$2
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
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
