#!/usr/bin/env bash
# Installs this checkout and all that its tests need into .venv, in the versions and with the hashes of the lock files: the
# build tools first, since two packages come as source only and would fetch theirs without a hash. make test uses it then.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

test -x "$venv/bin/python" || "${PYTHON:-python3}" -m venv "$venv"
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" --require-hashes --only-binary :all: -r ci/build.lock
"${pip[@]}" --require-hashes --no-build-isolation --only-binary :all: --no-binary overlapy,stringology \
  -r ci/requirements.lock
"${pip[@]}" --no-index --no-deps --no-build-isolation -e .
"$venv/bin/python" -m pip check

if [ "$venv" = .venv ]; then
  touch .venv/test .venv/demo
  mkdir -p .integration
  echo '*' >.integration/.gitignore
  test -e .integration/venv || ln -s ../.venv .integration/venv # the tools are in the lock, too
fi
