#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what a target needs and this machine lacks: Debian packages (as root or through sudo) and, for the tests, the
# pinned vLLM releases from PyPI and Debian's kernel for the guests of soft-RoCE. Says what it does; a machine that has
# everything is not touched.
#
#   usage: conformance/deps.sh run|check BUILD
set -eu
what=$1
build=$2
here=$(dirname "$0")

# package | shell command that succeeds when the machine can do without it
need_run='
gcc             | command -v gcc
libc6-dev       | test -e /usr/include/stdio.h
clang           | command -v clang
libssl-dev      | test -e /usr/include/openssl/evp.h
libxxhash-dev   | test -e /usr/include/xxhash.h
libzstd-dev     | test -e /usr/include/zstd.h
zlib1g-dev      | test -e /usr/include/zlib.h
patch           | command -v patch
libuv1-dev      | test -e /usr/include/uv.h
libibverbs-dev  | test -e /usr/include/infiniband/verbs.h
'
need_check='
libcunit1-dev     | test -e /usr/include/CUnit/CUnit.h
libclang-rt-14-dev | clang -fsanitize=address,fuzzer-no-link -x c -o /dev/null - </dev/null 2>&1 | grep -q main
clang-format      | command -v clang-format
clang-tidy        | command -v clang-tidy
cppcheck          | command -v cppcheck
valgrind          | command -v valgrind
libc6-dbg         | dpkg -s libc6-dbg
gcovr             | command -v gcovr
python3           | command -v python3
python3-venv      | python3 -c "import venv, ensurepip"
pkg-config        | command -v pkg-config
mandoc            | command -v mandoc
zstd              | command -v zstd
libnuma1          | ldconfig -p | grep -q libnuma.so.1
libcurl4          | ldconfig -p | grep -q libcurl.so.4
locales-all       | locale -a | grep -qi tr_TR
qemu-system-x86   | command -v qemu-system-x86_64
busybox-static    | busybox true && ! ldd "$(command -v busybox)" | grep -q libc.so
cpio              | command -v cpio
iproute2          | command -v rdma
ibverbs-providers | ls /usr/lib/*/libibverbs/librxe-rdmav*.so
'

missing() { # table
    echo "$1" | while IFS='|' read -r package probe; do
        package=$(echo "$package" | tr -d ' ')
        [ -n "$package" ] || continue
        sh -c "$probe" >/dev/null 2>&1 || echo "$package"
    done
}

install_packages() { # table
    lacking=$(missing "$1" | tr '\n' ' ')
    [ -n "$lacking" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "deps: this machine lacks what Debian calls: $lacking" >&2
        echo "deps: there is no apt-get here; install the equivalents and run again" >&2
        exit 2
    fi
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            echo "deps: these packages are missing and neither root nor sudo is at hand: $lacking" >&2
            exit 2
        }
        as_root=sudo
    fi
    echo "deps: installing Debian packages: $lacking"
    mkdir -p "$build"
    if ! { $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends $lacking; } >"$build/deps.log" 2>&1; then
        echo "deps: apt-get failed:" >&2
        tail -5 "$build/deps.log" >&2
        exit 2
    fi
    lacking=$(missing "$1" | tr '\n' ' ')
    [ -z "$lacking" ] || {
        echo "deps: still missing after the installation: $lacking" >&2
        exit 2
    }
}

case $what in
run) install_packages "$need_run" ;;
check)
    install_packages "$need_run$need_check"
    "$here/adapters/vllm/fetch.sh" "$build/deps"
    "$here/rxe/fetch.sh" "$build/deps/rxe" || echo "deps: slices that need qemu will be skipped"
    ;;
*)
    echo "usage: deps.sh run|check BUILD" >&2
    exit 2
    ;;
esac
