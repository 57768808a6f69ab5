# Every target makes the virtual environment that it needs. `make run` and `make test` work right after a clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SERVING := $(VENV)/.serving
RELEASE_VENV := $(VENV)-release
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' app/__init__.py)
ENOUGH_PYTHON := $(PYTHON) -c 'import sys; sys.exit("Kindred needs Python 3.11 or newer, found " + sys.version.split()[0] + \
	"; name another with: make PYTHON=...") if sys.version_info < (3, 11) else None'
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WEB := tests/web
WEB_BIN := $(WEB)/node_modules/.bin
SCRIPTS := 'app/**/*.js' '$(WEB)/*.js'
GOLDEN := tests/conformance/data/cases.jsonl.gz tests/conformance/data/volumes.jsonl.gz \
	tests/conformance/data/preempt.jsonl.gz $(wildcard tests/conformance/data/v*/*.jsonl.gz) \
	tests/conformance/data/bench_checks_1000.jsonl.gz

# Three workers for two CPUs (tests/conftest.py). An idle worker takes tests from another one (worksteal). The tests of
# a file mostly stay together, so that the setup of a module runs once or twice.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# Tests that measure CPU time run alone (5 seconds): beside two other workers they measure half as much again.
ALONE := $(BIN)/python -m pytest -m alone tests/cost

.DEFAULT_GOAL := help
.PHONY: help run test test-deep test-tools test-all check check-web docs format format-web hooks pythons e2e e2e-turn browser screenshots soak bench bench-compare bench-baseline bench-intree parity parity-tables scheduler-perf load soak-load fuzz cost mutants conformance lock audit image krew release clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

run: $(SERVING) ## Serve the bundled demo cluster on 127.0.0.1:8888, no Kubernetes needed
	$(BIN)/kindred serve --demo

# `make test COVERAGE=--cov` also measures which lines no test runs, against their floor.
COVERAGE :=

test: $(STAMP) ## Run the tests, with the golden cases of the real scheduler plugins (5 to 10 minutes on 2 CPUs)
	$(PYTEST) -m "not tools and not alone" $(COVERAGE)
	$(ALONE)

test-deep: $(STAMP) ## The random tests at the full depth (7 minutes)
	KINDRED_TEST_DEPTH=1 $(PYTEST) -m "deep and not tools and not alone"

test-tools: $(STAMP) ## The self-tests of the tools: bench, load, mutants, the fake API server
	$(PYTEST) -m "tools and not alone"

test-all: $(STAMP) ## `make test` with coverage and its floor, `make test-deep` and `make test-tools`
	$(MAKE) test COVERAGE="--cov --cov-report=term"
	$(MAKE) test-deep
	$(MAKE) test-tools

check: $(STAMP) check-web ## ruff, mypy --strict, import-linter; yamllint, shellcheck; eslint, prettier and tsc for the page
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/yamllint --strict .
	$(BIN)/shellcheck $$(git grep -lE '^#!.*[/ ](ba)?sh$$')

ifeq ($(shell command -v npm),)
check-web:
	@echo "check-web: skipped, because Node.js with npm is not installed"
else
check-web: $(STAMP) $(WEB)/node_modules/.installed
	@mkdir -p $(WEB)/generated
	$(BIN)/kindred openapi --port admin > $(WEB)/generated/admin-port.json
	$(WEB_BIN)/openapi-typescript $(WEB)/generated/admin-port.json --output $(WEB)/generated/paths.d.ts
	$(WEB_BIN)/prettier --check --log-level warn $(SCRIPTS) '$(WEB)/*.d.ts'
	$(WEB_BIN)/eslint --config $(WEB)/eslint.config.js --max-warnings 0 $(SCRIPTS)
	$(WEB_BIN)/tsc --project $(WEB)
endif

format: $(STAMP) ## Format and fix with ruff and, if Node.js is installed, eslint and prettier
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(if $(shell command -v npm),$(MAKE) --no-print-directory format-web)

format-web: $(WEB)/node_modules/.installed
	$(WEB_BIN)/eslint --config $(WEB)/eslint.config.js --fix $(SCRIPTS)
	$(WEB_BIN)/prettier --write --log-level warn $(SCRIPTS) '$(WEB)/*.d.ts'

pythons: $(STAMP) ## mypy and the tests under each installed supported Python (3.11 to 3.13); ARGS="tests/core" for a part
	$(BIN)/python -m tests.pythons $(ARGS)

hooks: $(STAMP) ## Run `make check` before each commit (pre-commit)
	$(BIN)/pre-commit install

conformance: $(STAMP) ## Compare the plugins with the golden cases, with a summary per plugin
	$(BIN)/python -m tests.conformance $(GOLDEN)

e2e: $(STAMP) ## Tests with a real etcd, kube-apiserver and kube-scheduler, which are built if they are missing (needs Go)
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m tests.manifests.helm
	$(BIN)/python -m pytest tests/e2e $(ARGS)

e2e-turn: $(STAMP) ## A part of `make e2e` with another release, which changes daily among releases that are built already
	$(BIN)/python -m tests.e2e.turn

browser: $(STAMP) ## Drive the page of the admin port in a headless Chromium
	$(BIN)/python -m pytest tests/browser

screenshots: $(STAMP) ## Draw the page of the admin port again: docs/images
	$(BIN)/python -m tests.browser.screenshots

soak: $(STAMP) ## The invariant of the equivalence cache over 25 times as many random event sequences as in `make test-all` (more than an hour)
	KINDRED_TEST_DEPTH=25 $(PYTEST) tests/properties/test_equivalence.py

bench: $(STAMP) ## 5,000 nodes / 150,000 pods: checksums, all ratios with their bounds, docs/bench/latest.* (10 minutes)
	$(BIN)/python -m tests.conformance tests/conformance/data/bench_checks_5000.jsonl.gz
	$(BIN)/python -m tests.bench

bench-compare: $(STAMP) ## Changes since docs/bench/baseline.json beyond the noise; NEW=FILE: without a new run
	$(BIN)/python -m tests.bench.compare $(if $(NEW),--new $(NEW))

bench-baseline: ## Keep docs/bench/latest.json as the baseline of bench-compare
	cp docs/bench/latest.json docs/bench/baseline.json

load: $(STAMP) ## Simulated schedulers (locust) for a minute: on 5,000 nodes / 150,000 pods, or HOST=http://...; ARGS are passed on
	$(BIN)/python -m tests.load $(addprefix --host ,$(filter http%,$(HOST))) $(ARGS)

soak-load: $(STAMP) ## `make load` for ten minutes with TLS, new certificates and faults of the API server: docs/bench/soak.json
	$(BIN)/python -m tests.load --seconds 600 --faults --tls --churn-rate 200 --sheds-allowed \
		--report docs/bench/soak.json $(ARGS)

fuzz: $(STAMP) ## The robustness tests with 20 times as many requests as in `make test-all` (some minutes)
	KINDRED_TEST_DEPTH=20 $(PYTEST) tests/robustness

cost: $(STAMP) ## The cost of hostile pods, requests, objects and connections, against its bounds; ARGS="--forms anti-* --quick"
	$(BIN)/python -m tests.cost --live on $(ARGS)

mutants: $(STAMP) ## Plant faults and check that the tests find them (tests/mutants, half an hour); ARGS="--only 'watch,wire' --list"
	$(BIN)/python -m tests.mutants $(ARGS)

bench-intree: $(STAMP) ## The engine against the real in-tree InterPodAffinity, with results compared (needs Go; builds once)
	$(BIN)/python -m tests.bench.intree

parity: $(STAMP) ## Random cases: the engine against the real plugins of each release (needs Go; builds once); ARGS="--kubernetes 1.37 --seed 7"
	$(BIN)/python -m tests.parity $(or $(ARGS),--minutes 5)

parity-tables: $(STAMP) ## The rows of upstream's own unit tests, 1.34 and 1.37, against the real plugins (needs Go; builds once)
	$(BIN)/python -m tests.parity.tables $(or $(ARGS),--kubernetes 1.34 --kubernetes 1.37)

scheduler-perf: $(STAMP) ## Upstream's scheduler_perf at 5,000 nodes: in-tree, decide-any-node and ceiling (needs Go; two hours); ARGS="--list"
	$(BIN)/python -m tests.e2e.scheduler_perf $(ARGS)

krew: $(STAMP) ## The archive of the krew plugin and its manifest, in dist; ADDRESS=https://... is its download address
	manifests/krew/build.sh $(BIN)/python dist $(ADDRESS)

lock: $(STAMP) ## Make the lock files again from pyproject.toml; UPGRADE=--upgrade takes newer packages
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml --group load -c requirements-dev.lock \
		-o requirements-load.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate --group pyproject.toml:build -c requirements-dev.lock \
		-o requirements-build.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate --group pyproject.toml:release -c requirements-dev.lock \
		-o requirements-release.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate --group pyproject.toml:docs -c requirements-dev.lock \
		-o requirements-docs.lock
	$(if $(shell command -v npm),npm --prefix $(WEB) install --package-lock-only)

docs: $(VENV)/.docs ## Build the documentation site in dist/site; a broken link is an error
	$(BIN)/python -m tests.site dist/site-source
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

audit: $(RELEASE_VENV)/.installed ## Known vulnerabilities of the locked packages (pip-audit); exit status 3: no database reached
	$(RELEASE_VENV)/bin/python -m release.audit --tools $(RELEASE_VENV)/bin

# The first engine that works: a docker without its daemon does not.
ENGINE = $(or $(DOCKER),$(shell for each in docker podman buildah; do $$each info >/dev/null 2>&1 && echo $$each && break; done),docker)

image: ## Build the container image that the overlays name, by docker, podman or buildah (DOCKER=...); ARGS="--build-arg BASE_DIGEST=sha256:..."
	$(ENGINE) build --build-arg VERSION=$(VERSION) $(ARGS) -t kindred:$(VERSION) .

release: $(STAMP) $(RELEASE_VENV)/.installed ## All files of a release in dist, from the commit; ADDRESS=https://... is their download address; BASE_DIGEST=sha256:... pins the base of the image; IMAGE=no: without it
	renderer="$$($(BIN)/python -m tests.manifests.kustomize)" && $(BIN)/python -m release --renderer "$$renderer" --tools $(RELEASE_VENV)/bin --folder dist --image $(or $(IMAGE),yes) $(addprefix --address ,$(ADDRESS)) \
		$(addprefix --tag ,$(TAG)) $(addprefix --base-digest ,$(BASE_DIGEST))

clean: ## Remove the virtual environments and the files of the tools
	rm -rf $(VENV) $(VENV)-* $(WEB)/node_modules $(WEB)/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage dist

$(WEB)/node_modules/.installed: $(WEB)/package-lock.json $(WEB)/package.json
	npm --prefix $(WEB) ci --ignore-scripts
	@touch $@

# `make run` needs a third of the packages of tests and tools. Modules are compiled at their import. uv installs in a
# third of pip's time, but does not read pip's configuration. So pip installs if uv cannot.
$(SERVING): requirements.lock requirements-build.lock pyproject.toml
	@$(ENOUGH_PYTHON)
	@echo "Installing what serving needs into $(VENV): about 50 packages, 250 MB, once"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --no-compile --require-hashes -r requirements-build.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || \
		$(PIP) --no-deps --no-compile --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The site has its own lock (15 MB of packages), so that `make test` does not install its packages.
$(VENV)/.docs: requirements-docs.lock $(STAMP)
	$(PIP) --no-deps --require-hashes -r requirements-docs.lock
	@touch $@

$(STAMP): requirements-dev.lock pyproject.toml
	@$(ENOUGH_PYTHON)
	@echo "Installing Kindred with all that tests and tools need into $(VENV): 650 MB, once"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(SERVING)

$(RELEASE_VENV)/.installed: requirements-release.lock
	@$(ENOUGH_PYTHON)
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@
