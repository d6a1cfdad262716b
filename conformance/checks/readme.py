#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the console examples of a README and compares what they print with what it shows.

usage: readme.py BIN_FOLDER README...      BIN_FOLDER is put first in PATH

A block fenced as ```console holds lines "$ COMMAND" and the output that follows. A line "[...]" in the shown output stands for
any number of lines. Other fences are not run. Closing line: "N passed, N failed, 0 skipped".
"""
import os
import re
import subprocess
import sys


def examples(text):
    """Yields (command, shown lines)."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        command, shown = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            else:
                shown.append(line)
        if command:
            yield command, shown


def matches(shown, seen):
    pattern = "".join("(?:.*\n)*" if line == "[...]" else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in seen)) is not None


def main():
    os.environ["PATH"] = os.path.abspath(sys.argv[1]) + os.pathsep + os.environ["PATH"]
    passed = failed = 0
    for readme in sys.argv[2:]:
        with open(readme, encoding="utf-8") as file:
            text = file.read()
        for command, shown in examples(text):
            run = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, timeout=120, text=True)
            seen = run.stdout.splitlines()
            if matches(shown, seen):
                passed += 1
            else:
                failed += 1
                print(f"readme: {readme}: `{command}` prints something else:", *seen[:30], sep="\n    ")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
