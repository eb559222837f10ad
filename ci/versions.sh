#!/usr/bin/env bash
# Runs the unit tests on each Python that is here, with the newest dependencies, and on the oldest of them with the oldest
# that pyproject.toml allows: bash ci/versions.sh [pytest arguments]. Needs uv (ci/install-integration.sh installs it).
# PYTHONS: which to take, default "3.10 3.11 3.12 3.13". EXTRAS: default "parquet,test". RESOLUTIONS: highest, lowest-direct.
set -euo pipefail
cd "$(dirname "$0")/.."

for bin in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin; do # uv asks no shim of pyenv's
  test ! -d "$bin" || PATH=$bin:$PATH
done
uv=$(command -v uv || echo "$PWD/.integration/venv/bin/uv")
test -x "$uv" || { echo "uv is not here: bash ci/install-integration.sh" >&2; exit 2; }
read -ra pythons <<<"${PYTHONS:-3.10 3.11 3.12 3.13}"
read -ra resolutions <<<"${RESOLUTIONS:-highest lowest-direct}"
export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1
work=$(mktemp -d "${TMPDIR:-/tmp}/evalspill-versions-XXXXXXXX")
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- tests --ignore=tests/integration

failed=0
try() {
  local python=$1 resolution=$2 venv=$work/$1-$2
  shift 2
  "$uv" venv --quiet --python "$python" "$venv" &&
    "$uv" pip install --quiet --python "$venv" --resolution "$resolution" -e ".[${EXTRAS:-parquet,test}]" &&
    "$venv/bin/python" -m pytest -p no:cacheprovider "$@"
}
for resolution in "${resolutions[@]}"; do
  for python in "${pythons[@]}"; do
    [ "$resolution" = highest ] || [ "$python" = "${pythons[0]}" ] || continue
    echo "== Python $python, dependencies: $resolution"
    try "$python" "$resolution" "$@" || { echo "== Python $python, $resolution: failed"; failed=1; }
  done
done
exit "$failed"
