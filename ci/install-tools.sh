#!/usr/bin/env bash
# Installs the tools from PyPI into .integration/venv of this checkout: those that tests/integration starts, and those of
# make lock, audit, versions and sbom.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/.integration

mkdir -p "$tools"
echo '*' >"$tools/.gitignore"
test -x "$tools/venv/bin/python" || "${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip install -q -q --disable-pip-version-check -r ci/integration.txt
touch "$tools/tools"
