# The verbs of this repository. Each one sets up .venv by itself when it has to.
# `make` alone lists them.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The version of the installer is locked like everything else.
UV_VERSION := $(shell awk '/^name = "uv"$$/ { getline; gsub(/"/, ""); print $$3 }' uv.lock)

# Two workers for each core and one more, at most 8: eight groups of tests have a real control plane each, and mostly
# wait for it. tests/workers.py says what goes to the same one, and which goes first.
# Empty: one test after the other, in one process.
TEST_WORKERS ?= --numprocesses $(shell n=$$(( 2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1 )); echo $$(( n < 8 ? n : 8 )))

# Tests start hundreds of processes: without compiled files each of them compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo docs web browser shells test test-real test-beside bed soak kills conformance conformance-performance check bench fuzz fuzz-objects fuzz-calendars scenarios generate crds picture wheels dist release clean \
	check-format check-lint check-types check-imports check-generated

help: ## List the verbs
	@echo "Tenure: verbs of the Makefile"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-23s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Prepare .venv (every other verb does it by itself)

$(READY): pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "make: Python 3.11 or newer is needed, but '$(PYTHON)' is $$($(PYTHON) -V 2>/dev/null || echo missing); try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "make: '$(PYTHON)' cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; }
	@if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "· making $(VENV) with $$($(PYTHON) -V)"; \
		$(PYTHON) -m venv --clear $(VENV); \
	fi
	@if [ "$$($(BIN)/uv --version 2>/dev/null | cut -d' ' -f2)" != "$(UV_VERSION)" ]; then \
		echo "· installing uv $(UV_VERSION) into $(VENV)"; \
		{ $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade >/dev/null; } && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"; \
	fi
	@echo "· installing what uv.lock names into $(VENV)"
	@env -u VIRTUAL_ENV UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/uv sync --frozen --quiet --no-python-downloads
	@touch $@

demo: $(READY) ## Watch an embedded cluster for twenty seconds
	@$(BIN)/tenure demo $(ARGS)

test: $(READY) ## Run all tests (no network); ARGS="-k drain" picks some
	@echo "· running the tests"
	@$(BIN)/pytest -q $(TEST_WORKERS) $(ARGS)

test-real: $(READY) ## The tests on a real control plane alone (see bed)
	@$(BIN)/python -m testbed.binaries
	@echo "· running against a real control plane"
	@$(BIN)/pytest -q $(TEST_WORKERS) -m real tests/contract tests/real $(ARGS)

test-beside: $(READY) ## The stories beside Karpenter, on an older release of it: KARPENTER=1.6
	@export TENURE_BED_KARPENTER=$(KARPENTER); $(BIN)/python -m testbed.build && \
		$(BIN)/pytest -q -m real tests/real/beside $(ARGS)

bed: $(READY) ## Build the real control plane once, for every checkout (minutes)
	@$(BIN)/python -m testbed.build $(ARGS)

soak: $(READY) ## Repeat the stories of processes that die and come back; N=10 times
	@$(BIN)/python -m testbed.binaries
	@$(BIN)/python -m testbed.soak $(or $(N),10) $(ARGS)

kills: $(READY) ## Karpenter killed at its writes, beside Tenure, in 16 rounds of 4 minutes; ARGS="3 5" runs two
	@$(BIN)/python -m testbed.binaries
	@$(BIN)/python -m testbed.kills $(ARGS)

conformance: $(READY) ## Karpenter's own suites against tenure run (90 minutes); ARGS="--focus Reboot"
	@$(BIN)/python -m testbed.binaries
	@$(BIN)/python -m testbed.conformance $(ARGS)

conformance-performance: $(READY) ## Karpenter's performance suite against tenure run (hours); ARGS="--focus Basic"
	@$(BIN)/python -m testbed.binaries
	@$(BIN)/python -m testbed.conformance.performance $(ARGS)

CHECKS := format lint types imports generated
check: $(READY) ## Format, lint, types, import direction, generated files; shows all failures
	@failed=""; \
	for step in $(CHECKS); do \
		$(MAKE) --no-print-directory --silent check-$$step || failed="$$failed $$step"; \
	done; \
	if [ -n "$$failed" ]; then echo "check: failed:$$failed" >&2; exit 1; fi; \
	echo "check: all fine ($(CHECKS))"

check-format: $(READY)
	@echo "· format (mended by: $(BIN)/ruff format)"
	@$(BIN)/ruff format --check --quiet --diff .

check-lint: $(READY)
	@echo "· lint"
	@$(BIN)/ruff check --quiet .

check-types: $(READY)
	@echo "· types"
	@$(BIN)/mypy --no-error-summary

check-imports: $(READY)
	@echo "· import direction"
	@$(BIN)/lint-imports --no-logo > $(VENV)/.imports 2>&1 || { cat $(VENV)/.imports; exit 1; }

check-generated: $(READY)
	@echo "· generated files (mended by: make generate)"
	@$(BIN)/python -m docs.generate --check; docs=$$?; $(BIN)/python -m testbed.manifests --check && exit $$docs

bench: $(READY) ## Decode, packing and simulation: ratios and growth first, then seconds
	@$(BIN)/python -m benchmarks.run $(ARGS)

fuzz: $(READY) ## Random seeds with faults and checkers on; SEED=7 repeats one
ifndef SEED
	@echo "· properties, on examples that were never tried before"
	@TENURE_EXAMPLES=explore $(BIN)/pytest -q --timeout=3600 tests/properties
	@echo "· a fault at every single call of every disruption"
	@TENURE_EXAMPLES=explore $(BIN)/pytest -q tests/runtime/test_voluntary_crashes.py
	@echo "· random days in the embedded cluster"
endif
	@$(BIN)/python -m tests.fuzz.run $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz-objects: $(READY) ## Odd objects that a real API server accepts; COUNT=20000, SEED=7 repeats one run
	@$(BIN)/python -m tests.fuzz.objects $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz-calendars: $(READY) ## Random windows and budgets against an oracle; COUNT=2000, SEED=7 repeats one run
	@$(BIN)/python -m tests.fuzz.calendars $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(ARGS)

scenarios: $(READY) ## Simulate every shipped scenario and hold it to its expectations
	@failed=""; \
	for file in examples/scenarios/*.yaml; do \
		echo "· $$file"; \
		$(BIN)/tenure simulate $$file > $(VENV)/.scenario 2>&1 || { cat $(VENV)/.scenario; failed="$$failed $$file"; }; \
		tail -n 1 $(VENV)/.scenario; \
	done; \
	if [ -n "$$failed" ]; then echo "scenarios: failed:$$failed" >&2; exit 1; fi

generate: $(READY) ## Write the generated files: CRDs, pages, the chart's settings, deploy/
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m testbed.manifests

crds: $(READY) ## Print the CRDs as YAML for kubectl apply
	@$(BIN)/tenure crds

docs: $(READY) ## Build the documentation as a site, into site/; ARGS=--pictures draws docs/pictures/
	@$(BIN)/python -m docs.site $(ARGS)

web: ## Build the web page into the package, from web/ (needs Node 20.19 or newer; nothing else does)
	@command -v npm >/dev/null || { echo "make: web needs Node 20.19 or newer with npm; what is built is in src/tenure/dashboard/web/static" >&2; exit 1; }
	@cd web && npm ci --silent && npm run --silent build

browser: ## Get Chromium, for the tests that look at pages (Debian; needs root)
	@command -v chromium >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null; }
	@chromium --version

shells: ## Get zsh and fish, for the tests of completion (Debian; needs root)
	@for shell in zsh fish; do command -v $$shell >/dev/null || missing="$$missing $$shell"; done; \
	[ -z "$$missing" ] || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $$missing >/dev/null; }
	@zsh --version; fish --version

picture: $(READY) ## Draw docs/demo.svg from a run of the demo
	@$(BIN)/python -m docs.picture

wheels: $(READY) ## Fetch the libraries' wheels once, for the tests that install Tenure as a newcomer does
	@$(BIN)/python -m release.wheels

dist: $(READY) ## Build wheel, sdist, chart, SBOM and licences into dist/, the same from the same commit
	@$(BIN)/python -m release.dist

release: $(READY) ## Cut a release in the changes and the chart; VERSION=0.2.0
	@$(BIN)/python -m release.cut $(VERSION)

clean: ## Remove .venv and every cache
	rm -rf $(VENV) site web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage dist
	find src tests benchmarks docs release -name __pycache__ -type d -prune -exec rm -rf {} +
