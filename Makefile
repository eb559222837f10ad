# Everything runs in .venv, made on first use; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench bench-scale integration-tools lock audit versions sbom fuzz reliability mutation clean

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

# The versions and hashes that CI installs; make lock UPGRADE=--upgrade takes newer ones.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' .integration/venv/bin/uv pip compile --quiet --no-config --universal \
	--python-version 3.10 --generate-hashes $(UPGRADE)

lock: .integration/tools
	$(COMPILE) --all-extras --output-file ci/requirements.lock pyproject.toml ci/integration.txt
	$(COMPILE) --constraints ci/requirements.lock --output-file ci/runtime.lock pyproject.toml
	$(COMPILE) --constraints ci/requirements.lock --output-file ci/build.lock ci/build.txt

# Known flaws of what the locks name; SERVICE=osv asks another database.
SERVICE ?= pypi
audit: .integration/tools
	.integration/venv/bin/pip-audit --strict --require-hashes --disable-pip --vulnerability-service $(SERVICE) \
		-r ci/requirements.lock -r ci/build.lock

# A few seconds of each target; FUZZ is the long run's: make fuzz FUZZ='--seconds 610 --keep /tmp/kept'. See fuzz/README.md.
FUZZ ?= --seconds 3 --seed 1 jsonl delimited document plaintext packed leafpaths configfile textwords stored
fuzz: .venv/test
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet atheris==3.0.0 || \
		{ echo "atheris cannot be installed for this Python: nothing was fuzzed" >&2; exit 0; }; \
	nice $(BIN)/python -m fuzz.run $(FUZZ)

# Every fault of tests/faults_list.py and 100 kills, with their outcome in docs/reliability.md; needs root for small disks.
reliability: .venv/test
	cd tests && ../$(BIN)/python faults_list.py --kills 100

# Small changes to what decides, and the tests that notice them: docs/mutation.md.
mutation:
	bash ci/mutation.sh

versions: .integration/tools
	bash ci/versions.sh

# What a user installs without extras, as CycloneDX: the same lock gives the same bytes.
sbom: .integration/tools
	@mkdir -p dist
	.integration/venv/bin/cyclonedx-py requirements ci/runtime.lock \
		--pyproject pyproject.toml --output-reproducible --of JSON --output-file dist/evalspill-guard.cdx.json

.integration/tools: ci/integration.txt
	bash ci/install-tools.sh

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
