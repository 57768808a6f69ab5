# Every target makes the virtual environment it needs; `make run` and `make test` work right after a clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GOLDEN := tests/conformance/data/cases.jsonl.gz tests/conformance/data/volumes.jsonl.gz \
	tests/conformance/data/preempt.jsonl.gz tests/conformance/data/bench_checks_1000.jsonl.gz

.DEFAULT_GOAL := help
.PHONY: help run test check format e2e browser screenshots soak bench bench-compare bench-baseline bench-intree load soak-load fuzz conformance lock image clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

run: $(STAMP) ## Serve the bundled demo cluster on 127.0.0.1:8888, no Kubernetes needed
	$(BIN)/kindred serve --demo

test: $(STAMP) ## Run all tests, the golden cases of the real scheduler plugin among them
	$(BIN)/python -m pytest

check: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## Let ruff format and mend what it can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

conformance: $(STAMP) ## Hold the plugins against the golden cases, with a summary per plugin
	$(BIN)/python -m tests.conformance $(GOLDEN)

e2e: $(STAMP) ## Tests beside a real etcd, kube-apiserver and kube-scheduler, which are built if they are missing (needs Go)
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m pytest tests/e2e

browser: $(STAMP) ## Drive the page of the admin port in a headless Chromium
	$(BIN)/python -m pytest tests/browser

screenshots: $(STAMP) ## Draw the page of the admin port again: docs/images
	$(BIN)/python -m tests.browser.screenshots

soak: $(STAMP) ## The law of the equivalence cache over 25 times as many random lives of a cluster (more than an hour)
	KINDRED_TEST_STREAMS=5000 $(BIN)/python -m pytest tests/properties/test_equivalence.py

bench: $(STAMP) ## 5,000 nodes / 150,000 pods: checksums, all ratios with their bounds, docs/bench/latest.* (10 minutes)
	$(BIN)/python -m tests.conformance tests/conformance/data/bench_checks_5000.jsonl.gz
	$(BIN)/python -m tests.bench

bench-compare: $(STAMP) ## What has changed since docs/bench/baseline.json beyond the noise; NEW=FILE: without a new run
	$(BIN)/python -m tests.bench.compare $(if $(NEW),--new $(NEW))

bench-baseline: ## Keep docs/bench/latest.json as what bench-compare compares with
	cp docs/bench/latest.json docs/bench/baseline.json

load: $(STAMP) ## Simulated schedulers (locust) for a minute: on 5,000 nodes / 150,000 pods, or HOST=http://...; ARGS are passed on
	$(BIN)/python -m tests.load $(addprefix --host ,$(filter http%,$(HOST))) $(ARGS)

soak-load: $(STAMP) ## `make load` for ten minutes with TLS, new certificates and faults of the API server: docs/bench/soak.json
	$(BIN)/python -m tests.load --seconds 600 --faults --tls --churn-rate 200 --sheds-allowed \
		--report docs/bench/soak.json $(ARGS)

fuzz: $(STAMP) ## The robustness tests with 20 times as many requests (some minutes)
	KINDRED_TEST_FUZZ=20 KINDRED_TEST_EXAMPLES=1000 $(BIN)/python -m pytest tests/robustness

bench-intree: $(STAMP) ## The engine against the real in-tree InterPodAffinity, answers compared (needs Go; builds once)
	$(BIN)/python -m tests.bench.intree

lock: $(STAMP) ## Make the lock files again from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml --extra otel -c requirements-dev.lock \
		-o requirements-otel.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate pyproject.toml --group load -c requirements-dev.lock \
		-o requirements-load.lock

image: ## Build the container image (docker, or DOCKER=podman / buildah); ARGS="--build-arg BASE_DIGEST=sha256:..."
	$(or $(DOCKER),docker) build $(ARGS) -t kindred:dev .

clean: ## Remove the virtual environment and what the tools leave behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist

$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Kindred needs Python 3.11 or newer, found " + sys.version.split()[0] + \
		"; name another with: make PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
