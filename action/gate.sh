#!/usr/bin/env bash
# Ends the action with the gate's own exit code. No code at all is a failure: something stopped before the gate could.
# EVALSPILL_CODE: the gate's exit code. EVALSPILL_FAIL_ON: findings, or error, which lets code 1 pass.
set -euo pipefail

code=${EVALSPILL_CODE:-}
case $code in
  0) exit 0 ;;
  1)
    if [ "${EVALSPILL_FAIL_ON:-}" = error ]; then
      echo "Eval rows are in the training data; fail-on is error, so this passes."
      exit 0
    fi
    exit 1
    ;;
  [2-9] | [1-9][0-9] | [1-9][0-9][0-9]) exit "$code" ;;
  *)
    echo "::error title=evalspill-guard::The gate did not run to its end, so nothing is known."
    exit 4
    ;;
esac
