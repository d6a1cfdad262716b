#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a Python check with the interpreter that has the fetched packages; exit 77 when they were not fetched.
#
#   usage: conformance/checks/python.sh BUILD SCRIPT [ARGUMENT...]
set -u
python=$1/deps/venv/bin/python
shift
if [ ! -x "$python" ]; then
    echo "python: skipped: $python is missing (run make deps-check)"
    exit 77
fi
exec "$python" "$@"
