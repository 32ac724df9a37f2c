# What a newcomer runs is what CI runs. `make` alone explains itself.
#
# Everything Python lives in .venv, made here on first use. System packages (kcat, Java 17, a
# venv module) are installed only when this is root on Debian and they are missing; elsewhere
# the text says what to install, and the tests that need them are skipped with that reason.

.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
SOURCES := src tests bench demo tools
# Byte code makes every broker process the tests start several times faster to be ready.
export PYTHONDONTWRITEBYTECODE :=

# Two processes of tests: most of their time is waiting, and there is one Spark (tests/side_by_side.py).
# `make test WORKERS=0` runs them one by one.
WORKERS := 2
IN_WORKERS := -n $(WORKERS) --dist loadfile

QUICK_TESTS := tests/test_architecture.py tests/test_docs.py tests/records tests/protocol tests/settings \
	tests/log tests/coordinators

# One line of shell: the first Python that is new enough.
find_python = for python in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo "$$python"; break; fi; done

# $(call apt,PACKAGE…): install if this is root on Debian; fail quietly otherwise.
apt = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q $(1) >/dev/null 2>&1 || { \
	apt-get update -q >/dev/null 2>&1; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q $(1) >/dev/null 2>&1; }; }; }

# $(call without_services,COMMAND): what COMMAND installs is not started (Debian's policy-rc.d).
without_services = { policy=/usr/sbin/policy-rc.d; made=; \
	[ "$$(id -u)" != 0 ] || [ -e $$policy ] || { made=$$policy; \
	printf '\#!/bin/sh\nexit 101\n' >$$policy && chmod +x $$policy; }; \
	$(1); code=$$?; [ -z "$$made" ] || rm -f "$$made"; [ $$code = 0 ]; }

# Print a usable Java's path; installs one first where there is none and this is root on Debian.
find_java = $(BIN)/python -m headrace.java.installation 2>/dev/null || { \
	echo "no Java 17: installing Debian's openjdk-17-jre-headless, if this is root on Debian"; \
	$(call apt,openjdk-17-jre-headless) || $(call apt,default-jre-headless) || true; \
	$(BIN)/python -m headrace.java.installation; }

.PHONY: help
help: ## Show this help
	@echo 'headrace: a Kafka-compatible message bus in one Python process'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: $(VENV)/.installed lint types optional-tools ## Lint, type-check, test; prints coverage (minutes, from a fresh machine)
	$(PYTEST) -q $(IN_WORKERS) --cov --cov-report=term
	@echo 'make test: all green'

.PHONY: check
check: $(VENV)/.installed lint types ## The fast part: lint, types, tests that start no foreign program
	$(PYTEST) -q -x $(QUICK_TESTS)

.PHONY: test-all
test-all: test ## make test, then the long ones: kill loops, fuzzing, foreign suites
	$(PYTEST) -q -m slow --timeout=7200

.PHONY: demo
demo: $(VENV)/.installed spark ## Sensors, a broker, a lake and a table on Spark, compared in SQL; a plot; says how long it takes
	@$(BIN)/python -m demo $(ARGS)

.PHONY: bench
bench: $(VENV)/.installed java ## headrace against Apache Kafka 4.3.1 on this machine: table, JSON, plots
	$(BIN)/python -m bench

# Beside a commit before, Kafka takes no part.
.PHONY: bench-quick
bench-quick: $(VENV)/.installed $(if $(BASELINE),,java) ## The main rows of make bench in about two minutes; BASELINE=HEAD~1 compares with a commit
	$(BIN)/python -m bench --quick $(if $(BASELINE),--baseline='$(BASELINE)') $(ARGS)

.PHONY: bench-pipelines
bench-pipelines: $(VENV)/.installed java spark ## The pipelines against Kafka-fed Spark, a Parquet copy and plain Python
	$(BIN)/python -m bench.pipelines $(ARGS)

.PHONY: bench-mirror
bench-mirror: $(VENV)/.installed java ## headrace mirror beside a plain copy, to three nodes of Kafka; ARGS=--kills=10 kills it too
	$(BIN)/python -m bench.mirror $(ARGS)

.PHONY: bench-stalls
bench-stalls: $(VENV)/.installed java ## How long a client waits beside hostile loads, on both; ARGS=--quick for a tenth
	$(BIN)/python -m bench.stalls $(ARGS)

.PHONY: lint
lint: $(VENV)/.installed
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

.PHONY: types
types: $(VENV)/.installed
	$(BIN)/mypy

.PHONY: format
format: $(VENV)/.installed ## Let ruff put the code into shape
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

.PHONY: docs
docs: $(VENV)/.installed ## Write the pages in docs/ that are made from the code
	$(BIN)/python -m tools.settings_page > docs/settings.md
	$(BIN)/python -m tools.api_page > docs/api.md
	$(BIN)/python -m tools.compatibility_page docs/compatibility-results.json > docs/compatibility.md

.PHONY: compatibility
compatibility: $(VENV)/.installed optional-tools ## Run every client's tests and record what they can do (about 8 minutes)
	$(PYTEST) -q -m '' tests/interop --feature-results docs/compatibility-results.json
	@$(MAKE) --no-print-directory docs

.PHONY: wheel
wheel: $(VENV)/.installed ## Build the wheel and the source archive into dist/
	$(BIN)/python -m build

.PHONY: clean
clean: ## Remove what was made here: .venv, build products, caches
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis \
		htmlcov .coverage .coverage.* bench-results demo-results
	find $(SOURCES) \( -name __pycache__ -o -name '_scan*.so' \) -prune -exec rm -rf {} +

# The C accelerator is optional: without a compiler the install goes on and Python does its work.
$(VENV)/.installed: pyproject.toml $(wildcard src/headrace/records/*.[ch])
	@python=$$($(find_python)); \
	if [ -z "$$python" ]; then $(call apt,python3 python3-venv) && python=$$($(find_python)); fi; \
	if [ -z "$$python" ]; then echo 'headrace needs Python 3.11 or newer: install python3.11' \
		'and python3.11-venv (or run make PYTHON=/path/to/python3.12)' >&2; exit 1; fi; \
	"$$python" -c 'import ensurepip, venv' 2>/dev/null || $(call apt,python3-venv) || { \
		echo "$$python has no venv module: install Debian's python3-venv" >&2; exit 1; }; \
	command -v cc >/dev/null || $(call apt,gcc python3-dev libc6-dev) || \
		echo 'no C compiler: headrace will check batches in Python, which is slower'; \
	[ -x $(BIN)/python ] || { echo "making $(VENV) with $$python"; "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

.PHONY: java
java: $(VENV)/.installed ## Find Java 17 (or install it as root on Debian) and fetch Kafka's jars
	@$(find_java)
	@$(BIN)/python -m headrace.kafka.jars

# What `headrace pipeline setup` does, with the system package it cannot install itself.
.PHONY: spark
spark: $(VENV)/.installed ## Find Java 17, fetch Spark's pinned jars and build its class archive
	@$(find_java)
	@$(BIN)/python -m headrace pipeline setup

# Tests that compare with other programs run where those are to be had, and are skipped elsewhere.
.PHONY: optional-tools
optional-tools: $(VENV)/.installed
	@command -v kcat >/dev/null || $(call apt,kcat) || \
		echo 'no kcat: its tests are skipped; install the package kcat to run them'
	@$(MAKE) --no-print-directory java || \
		echo 'no Java or no jars: their tests are skipped; the lines above say what to install'
	@$(MAKE) --no-print-directory spark || \
		echo 'no Java or no jars: the tests on Spark are skipped; the lines above say what to install'
	@$(BIN)/python -m tools.databases --check >/dev/null 2>&1 || \
		$(call without_services,$(call apt,--no-install-recommends postgresql mariadb-server)) || true
	@$(BIN)/python -m tools.databases --check || echo 'their tests are skipped'
