#!/usr/bin/env bash
# Installs evalspill-guard from this checkout into a new venv below $RUNNER_TEMP and says where: output `home`.
# EVALSPILL_PYTHON: the interpreter, else python3. EVALSPILL_WHEELS: a folder of wheels to use instead of an index.
set -euo pipefail

fail() {
  # What the user gave may hold what a log would take for a command: it stays out of the message.
  echo "::error title=evalspill-guard::$1"
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${EVALSPILL_PYTHON:-python3}
python=$(command -v -- "$python") || fail "No such interpreter: the input python names one that is not there (default: python3)."
case $python in /* | ?:*) ;; *) python=$PWD/$python ;; esac
"$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "Python 3.10 or newer is needed: name one in the input python."

from=()
if [ -n "${EVALSPILL_WHEELS:-}" ]; then
  wheels=$(cd -- "$EVALSPILL_WHEELS" 2>/dev/null && pwd) || fail "The input wheels is no folder."
  from=(--no-index --find-links "$wheels")
fi

home=$(mktemp -d "${RUNNER_TEMP:?}/evalspill-guard-XXXXXXXX")
cd "$home" # so that nothing of the repository being checked is imported
"$python" -I -m venv venv ||
  fail "No virtual environment could be made: install Python's venv module (Debian: python3-venv), or name another interpreter in the input python."
bin=venv/bin
test -d "$bin" || bin=venv/Scripts # Windows

# What a runner sets for pip to install elsewhere would miss the venv.
unset PIP_USER PIP_TARGET PIP_PREFIX
export PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1
if ! "$bin/python" -I -m pip install --quiet --no-compile "${from[@]}" "$root" >pip.log 2>&1; then
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$token"
  tail -n 60 pip.log
  echo "::$token::"
  fail "evalspill-guard could not be installed: it needs a package index that pip is set up for, or the input wheels."
fi
echo "home=$home" >>"$GITHUB_OUTPUT"
echo "python=$home/$bin/python" >>"$GITHUB_OUTPUT"
