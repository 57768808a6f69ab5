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
	tests/conformance/data/preempt.jsonl.gz tests/conformance/data/devices_random.jsonl.gz \
	$(wildcard tests/conformance/data/v*/*.jsonl.gz) \
	tests/conformance/data/bench_checks_1000.jsonl.gz

# Three workers for two CPUs (tests/conftest.py). An idle worker takes tests from another one (worksteal). The tests of
# a file mostly stay together, so that the setup of a module runs once or twice.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# Tests that measure CPU time run alone (5 seconds): beside two other workers they measure half as much again.
ALONE := $(BIN)/python -m pytest -m alone tests/cost

COMPILE := $(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate
NPM := $(shell command -v npm)

.DEFAULT_GOAL := help
.PHONY: help run test check format docs test-all conformance parity e2e browser cost mutants image release lock bench load

help: ## Show this list
	@awk -F':.*## ' '/^##@ / {printf "\n%s:\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile
	@printf '\nWhat ARGS and variables each target takes, and what has no target: CONTRIBUTING.md, The targets\n'

##@ Every day

run: $(SERVING) ## Serve the bundled demo cluster on 127.0.0.1:8888, no Kubernetes needed
	$(BIN)/kindred serve --demo

test: $(STAMP) ## Run the tests, with the golden cases of the real scheduler plugins (5 to 10 minutes on 2 CPUs); ARGS="tests/core"
	$(PYTEST) -m "not alone" $(ARGS)
	$(if $(ARGS),,$(ALONE))

check: $(STAMP) $(if $(NPM),$(WEB)/node_modules/.installed) ## ruff, mypy --strict, import-linter; yamllint, shellcheck; eslint, prettier and tsc for the page
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/yamllint --strict .
	$(BIN)/shellcheck $$(git grep -lE '^#!.*[/ ](ba)?sh$$')
ifeq ($(NPM),)
	@echo "check: the page's scripts are skipped, because Node.js with npm is not installed"
else
	@mkdir -p $(WEB)/generated
	$(BIN)/python -m tests.web > $(WEB)/generated/admin-port.json
	$(WEB_BIN)/openapi-typescript $(WEB)/generated/admin-port.json --output $(WEB)/generated/paths.d.ts
	$(WEB_BIN)/prettier --check --log-level warn $(SCRIPTS) '$(WEB)/*.d.ts'
	$(WEB_BIN)/eslint --config $(WEB)/eslint.config.js --max-warnings 0 $(SCRIPTS)
	$(WEB_BIN)/tsc --project $(WEB)
endif

format: $(STAMP) $(if $(NPM),$(WEB)/node_modules/.installed) ## Format and fix with ruff and, if Node.js is installed, eslint and prettier
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
ifneq ($(NPM),)
	$(WEB_BIN)/eslint --config $(WEB)/eslint.config.js --fix $(SCRIPTS)
	$(WEB_BIN)/prettier --write --log-level warn $(SCRIPTS) '$(WEB)/*.d.ts'
endif

docs: $(VENV)/.docs ## Build the documentation site in dist/site; a broken link is an error
	$(BIN)/python -m tests.site dist/site-source
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

##@ Before a release

test-all: $(STAMP) ## `make test` with coverage and its floor, then the random tests at the full depth (15 minutes)
	$(PYTEST) -m "not alone" --cov --cov-report=term
	$(ALONE)
	KINDRED_TEST_DEPTH=1 $(PYTEST) -m "deep and not alone"

conformance: $(STAMP) ## Compare the plugins with the golden cases, with a summary per plugin
	$(BIN)/python -m tests.conformance $(GOLDEN)

parity: $(STAMP) ## Random cases: the engine against the real plugins of each release (needs Go; builds once); ARGS="--kubernetes 1.37 --seed 7"
	$(BIN)/python -m tests.parity $(or $(ARGS),--minutes 5)

e2e: $(STAMP) ## Tests with a real etcd, kube-apiserver and kube-scheduler, which are built if they are missing (needs Go); ARGS="-k gangs"
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m tests.manifests.helm
	$(BIN)/python -m pytest tests/e2e $(ARGS)

browser: $(STAMP) ## Drive the page of the admin port in a headless Chromium
	$(BIN)/python -m pytest tests/browser

cost: $(STAMP) ## The cost of hostile pods, requests, objects and connections, against its bounds; ARGS="--forms anti-* --quick"
	$(BIN)/python -m tests.cost --live on $(ARGS)

mutants: $(STAMP) ## Plant faults and check that the tests find them (tests/mutants, half an hour); ARGS="--only 'watch,wire' --list"
	$(BIN)/python -m tests.mutants $(ARGS)

# The first engine that works: a docker without its daemon does not.
ENGINE = $(or $(DOCKER),$(shell for each in docker podman buildah; do $$each info >/dev/null 2>&1 && echo $$each && break; done),docker)

image: ## Build the container image, by docker, podman or buildah (DOCKER=...); ARGS="--build-arg BASE_DIGEST=sha256:..."
	$(ENGINE) build --build-arg VERSION=$(VERSION) $(ARGS) -t kindred:$(VERSION) .

release: $(STAMP) $(RELEASE_VENV)/.installed ## All files of a release in dist, from the commit; BASE_DIGEST=sha256:..., IMAGE=no
	renderer="$$($(BIN)/python -m tests.manifests.kustomize)" && $(BIN)/python -m release --renderer "$$renderer" --tools $(RELEASE_VENV)/bin --folder dist --image $(or $(IMAGE),yes) \
		$(addprefix --tag ,$(TAG)) $(addprefix --base-digest ,$(BASE_DIGEST))

lock: $(if $(AUDIT),$(RELEASE_VENV)/.installed,$(STAMP)) ## Make the lock files again from pyproject.toml; UPGRADE=--upgrade: newer packages; AUDIT=yes: known vulnerabilities instead
ifdef AUDIT
	$(RELEASE_VENV)/bin/python -m release.audit --tools $(RELEASE_VENV)/bin
else
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --extra devices --group dev -o requirements-dev.lock
	$(COMPILE) pyproject.toml --extra devices -c requirements-dev.lock -o requirements-devices.lock
	$(COMPILE) pyproject.toml --group load -c requirements-dev.lock -o requirements-load.lock
	$(COMPILE) --group pyproject.toml:build -c requirements-dev.lock -o requirements-build.lock
	$(COMPILE) --group pyproject.toml:release -c requirements-dev.lock -o requirements-release.lock
	$(COMPILE) --group pyproject.toml:docs -c requirements-dev.lock -o requirements-docs.lock
	$(if $(NPM),npm --prefix $(WEB) install --package-lock-only)
endif

##@ Measuring

bench: $(STAMP) ## 5,000 nodes / 150,000 pods: checksums, all ratios with their bounds, docs/bench/latest.json (10 minutes; devices: Go)
	$(BIN)/python -m tests.conformance tests/conformance/data/bench_checks_5000.jsonl.gz
	$(BIN)/python -m tests.bench $(ARGS)

load: $(STAMP) ## Simulated schedulers (locust) for a minute, 5,000 nodes / 150,000 pods; ARGS="--soak": ten, with TLS and faults of the API server
	$(BIN)/python -m tests.load $(ARGS)

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
