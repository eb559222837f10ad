# Everything runs in .venv, made on first use; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench bench-scale integration-tools clean

demo: .venv/demo
	@code=0; $(BIN)/evalspill-guard check -c examples/evalspill.yaml || code=$$?; \
	echo; echo "The gate's exit code is $$code (1: eval rows were found in the training data)."; \
	echo "Open examples/evalspill-reports/support-qa/overlap-report.html in a browser."; \
	test $$code -eq 1

test: .venv/test lint
	$(BIN)/python -m pytest

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/test
	$(BIN)/python benchmarks/bench.py

bench-scale: .venv/test
	$(BIN)/python benchmarks/scale.py

# What tests/integration starts; without it those tests are skipped, each with its reason.
integration-tools:
	bash ci/install-integration.sh

.venv/demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ .venv/demo

clean:
	rm -rf .venv .integration examples/evalspill-reports benchmarks/data benchmarks/.venv
