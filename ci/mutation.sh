#!/usr/bin/env bash
# Mutation testing of the modules that decide what is green: make mutation. Half an hour or more on two cores.
# MUTANTS names some of them, as in MUTANTS='evalspill_guard.index.* evalspill_guard.kernel.*'.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive HEAD | tar -x -C "$work"
cat ci/mutation.toml >>"$work/pyproject.toml"
cat >>"$work/tests/conftest.py" <<'END'

import hypothesis

_PHASES = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # that one example fails is enough to know
hypothesis.settings.register_profile("mutation", phases=_PHASES, derandomize=True, database=None)
hypothesis.settings.load_profile("mutation")
END
cd "$work"
"${PYTHON:-python3}" -m venv .venv
.venv/bin/pip install --quiet --quiet --disable-pip-version-check -e '.[test]' mutmut==3.8.1
read -ra chosen <<<"${MUTANTS:-}"
.venv/bin/mutmut run --max-children "$(nproc)" "${chosen[@]}" >mutation.log 2>&1 || tail -20 mutation.log
.venv/bin/mutmut results --all true | sed 's/^ *//' | grep -v 'not checked' >results.txt

# Mutants are tested in forks, which have the modules loaded and the kernel's table of powers filled: what changes
# how these are made is tested again in a process of its own.
again() {
    (cd mutants && MUTANT_UNDER_TEST=$1 timeout 300 ../.venv/bin/python -m pytest -x -q -p no:cacheprovider \
        tests/test_kernel.py tests/test_reference.py >/dev/null 2>&1)
}
grep -E '^evalspill_guard\.kernel\..*[Pp]owers.*survived' results.txt | cut -d: -f1 | while read -r mutant; do
    again "$mutant" || sed -i "s/^$mutant: survived/$mutant: killed/" results.txt
done

echo "mutants by module and outcome:"
sed -E 's/^evalspill_guard\.([a-z]+)\.[^:]*: /\1 /' results.txt | sort | uniq -c
grep -vE ': (killed|timeout)$' results.txt | while IFS=: read -r mutant outcome; do
    echo "$mutant:$outcome"
    .venv/bin/mutmut show "$mutant" | grep -E '^[-+] ' || true
done
