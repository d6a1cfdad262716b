#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is Mooncake's wheel there? Exit 0, or 77 with the lines of a skipped slice.
#
#   usage: conformance/checks/wheel.sh BUILD
set -u
python=$1/deps/venv/bin/python
[ -x "$python" ] && "$python" -c 'import mooncake.store' 2>/dev/null && exit 0
echo "SKIP: no Mooncake wheel in $1/deps/venv (make deps-check fetches it)"
echo "0 passed, 0 failed, 1 skipped"
exit 77
