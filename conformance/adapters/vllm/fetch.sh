#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER/venv (what the adapter runs on) and FOLDER/vllm/VERSION (the Python files of vLLM releases) from PyPI.
#
#   usage: fetch.sh FOLDER [VERSION...]      default versions: 0.33.0 0.30.0
#          fetch.sh --pin FOLDER VERSION     prints the line for releases.txt of a release that is not there yet
#
# Everything is pinned with digests (requirements.txt, releases.txt). What is already there stays; a second run takes no
# time and needs no network. Of vLLM nothing is built, installed or run. Exit: 0, or 2 with a line that says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
free_kib_min=600000
python=${PYTHON:-python3}
work=""

fail() {
    echo "fetch: $1" >&2
    exit 2
}

clean_up() {
    status=$?
    [ -z "$work" ] || rm -rf "$work"
    exit $status
}

# The last lines of a failed command, and what to do.
explain() { # log, what
    grep -vE '^$|Retrying' "$1" | tail -4 | sed 's/^/fetch:   /' >&2 || true
    if grep -qiE 'no space left' "$1"; then
        fail "$2: the disk is full"
    elif grep -qiE 'do not match|MISMATCH' "$1"; then
        fail "$2: PyPI gave another file than the pinned one; nothing was kept"
    elif grep -qiE 'connection|resolve|timed out|retries|no matching distribution|unreachable' "$1"; then
        fail "$2: PyPI is not reached, or has nothing for this machine. One run needs a network, later ones none"
    fi
    fail "$2 failed"
}

check_machine() {
    command -v "$python" >/dev/null 2>&1 || fail "no $python here (Debian: apt-get install python3 python3-venv)"
    "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' ||
        fail "$python is not CPython 3.11 to 3.14; name another with PYTHON="
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python has no venv (Debian: apt-get install python3-venv)"
    free_kib=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
    [ "$free_kib" -ge "$free_kib_min" ] ||
        fail "$folder has $((free_kib / 1024)) MiB free, $((free_kib_min / 1024)) are needed while it works"
}

# A place on the same disk for all that is unfinished; left-overs of a killed run go first.
start_work() {
    [ -z "$work" ] || return 0
    rm -rf "$folder/.unfinished"
    check_machine
    work=$folder/.unfinished
    mkdir "$work"
    trap clean_up EXIT
    trap 'exit 130' INT TERM
}

run_pip() { # log, arguments...
    log=$1
    shift
    TMPDIR=$work PIP_PROGRESS_BAR=off "$folder/venv/bin/python" -m pip --disable-pip-version-check --no-input \
        --no-cache-dir --retries 2 "$@" >"$log" 2>&1
}

make_venv() {
    stamp=$folder/venv/requirements.txt # copied there when all of it is installed
    if cmp -s "$here/requirements.txt" "$stamp" && "$folder/venv/bin/python" -c '' 2>/dev/null; then return 0; fi
    start_work
    echo "fetch: making $folder/venv: $(grep -c == "$here/requirements.txt") packages from PyPI, about 65 MB" >&2
    rm -rf "$folder/venv"
    "$python" -m venv "$folder/venv" >"$work/log" 2>&1 || explain "$work/log" "making $folder/venv"
    run_pip "$work/log" install --require-hashes --no-deps --only-binary :all: -r "$here/requirements.txt" ||
        explain "$work/log" "installing requirements.txt"
    for program in "$folder"/venv/lib/python3*/site-packages/mooncake/mooncake_master; do
        [ ! -f "$program" ] || chmod +x "$program" # the wheel forgets that it is one
    done
    cp "$here/requirements.txt" "$stamp"
}

# pip asks a source distribution for its metadata before it keeps the file, which would run vLLM's set-up script. It
# gets this instead, under the name of the build backend: the name and version that were asked for.
make_backend() {
    mkdir -p "$work/backend/setuptools"
    : >"$work/backend/setuptools/__init__.py"
    cat >"$work/backend/setuptools/build_meta.py" <<'END'
import os


def prepare_metadata_for_build_wheel(folder, settings=None):
    name, version = os.environ["FETCHED"].split("==")
    info = f"{name}-{version}.dist-info"
    os.mkdir(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info
END
}

download() { # package==version [--hash...]: into $work
    make_backend
    echo "$@" >"$work/wanted.txt"
    FETCHED=$1 PYTHONPATH=$work/backend run_pip "$work/log" download --no-deps --no-build-isolation --no-binary :all: \
        --dest "$work" -r "$work/wanted.txt" || explain "$work/log" "downloading $1"
}

fetch_release() { # version
    [ ! -f "$folder/vllm/$1/vllm/__init__.py" ] || return 0
    line=$(grep "^$1 " "$here/releases.txt") ||
        fail "$1 has no line in releases.txt; '$0 --pin $folder $1' downloads it and prints that line"
    start_work
    # shellcheck disable=SC2086 # the fields of the line
    set -f && set -- $line && set +f
    version=$1 package=$2 file=$3 digest=$4 kept=$5
    echo "fetch: downloading $package $version from PyPI, 35 to 50 MB, for $folder/vllm/$version" >&2
    download "$package==$version" "--hash=sha256:$digest"
    echo "$digest  $work/$file" | sha256sum --check --status || fail "$file is not the file that releases.txt names"
    mkdir -p "$work/release" "$folder/vllm"
    set -f
    # shellcheck disable=SC2046 # one pattern a word
    tar -xzf "$work/$file" -C "$work/release" --strip-components=1 --wildcards $(echo "$kept" | tr , ' ') \
        >"$work/log" 2>&1 || explain "$work/log" "unpacking $file"
    set +f
    rm -rf "${folder:?}/vllm/$version" "$work/$file"
    mv "$work/release" "$folder/vllm/$version"
}

pin() { # version
    start_work
    download "vllm==$1"
    echo "$1 vllm vllm-$1.tar.gz $(sha256sum "$work/vllm-$1.tar.gz" | cut -d' ' -f1) */vllm/*.py,*/LICENSE"
}

usage() {
    sed -n '3,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

pinned=""
if [ "${1:-}" = --pin ]; then
    [ $# -eq 3 ] || usage
    pinned=$3
    set -- "$2"
fi
case ${1:-} in '' | -*) usage ;; esac
mkdir -p "$1" || fail "$1 cannot be made"
folder=$(cd "$1" && pwd)
shift
exec 9>"$folder/.lock"
flock 9 # another run may be at work in the same folder
make_venv
if [ -n "$pinned" ]; then
    pin "$pinned"
    exit 0
fi
[ $# -gt 0 ] || set -- 0.33.0 0.30.0
for version in "$@"; do fetch_release "$version"; done
