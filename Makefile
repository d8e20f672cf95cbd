# `make setup`, `make demo` and `make test` each work alone on a new clone: they need Python 3.11 or newer and a C library.
.PHONY: setup demo test lint coverage examples fuzz faults docs browser-test accessibility clean
SHELL := /bin/bash
.DELETE_ON_ERROR:

# Bytecode is written whatever the environment says: the processes of a run of tests share it.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

setup: $(VENV)/.base

demo: $(VENV)/.base
	@$(BIN)/lcma demo

# The slow tests too: make test MARK=
MARK ?= not slow
test: $(VENV)/.dev
	$(BIN)/pytest -m "$(MARK)" -n auto --maxprocesses 4 --dist worksteal $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests of schemes_db and verify with their coverage, which must reach 90%. Tracing would slow the others to half.
coverage: $(VENV)/.dev
	$(MAKE) test ARGS="tests/schemes_db tests/verify --cov --cov-report=term $(ARGS)"

examples: $(VENV)/.dev
	@set -e; for example in examples/*.py; do echo "-- $$example"; $(BIN)/python "$$example"; done

CASES ?= 10000
SEED ?= 2
fuzz: $(VENV)/.dev
	$(BIN)/python tests/schemes_db/fuzz_files.py $(CASES) $(SEED)
	$(BIN)/python tests/kernels/exact/fuzz_products.py $(CASES) $(SEED)

# What the fast suite is worth: it must find every fault of tests/faults, made one at a time in a copy of the project.
faults: $(VENV)/.dev
	$(BIN)/python tests/faults/seed_faults.py

# The documentation in docs/_build/html, the catalogue's pages in its folder `catalogue`. Strict: a warning or a dead link fails.
docs: export LCMA_HOME = $(CURDIR)/docs/_build/home
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/lcma site docs/_build/html/catalogue --results docs/results
	$(BIN)/python docs/_ext/check_links.py docs/_build/html

# The catalogue's pages in headless Chromium, and all built pages by axe-core, at 400 and 1400 pixels. Without Chromium or npm
# nothing is run, which is said.
browser-test: $(VENV)/.dev
	@command -v chromium >/dev/null || { echo "skipped: chromium is not installed (apt-get install chromium)"; exit 0; }; \
	  $(BIN)/pytest tests/workbench/test_site_browser.py tests/workbench/test_browser_verifier.py $(ARGS)

AXE := docs/_build/axe/node_modules/axe-core/axe.min.js
accessibility: $(VENV)/.dev
	@command -v chromium >/dev/null || { echo "skipped: chromium is not installed (apt-get install chromium)"; exit 0; }; \
	  command -v npm >/dev/null || { echo "skipped: npm is not installed, which brings axe-core"; exit 0; }; \
	  $(MAKE) --no-print-directory docs && \
	  { test -e $(AXE) || npm install --silent --no-audit --no-fund --prefix docs/_build/axe axe-core@4; } && \
	  LCMA_AXE=$(CURDIR)/$(AXE) $(BIN)/pytest tests/workbench/test_accessibility.py $(ARGS)

clean:
	rm -rf $(VENV) docs/_build docs/generated build dist *.egg-info .pytest_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "lcma needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/.python
	@$(PIP) --editable .
	@touch $@

# torch first and alone: with it in place no other package can pull another build of it. Tests import a sixth of the
# modules; the bytecode of all would take most of a minute.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.python
	@$(PIP) --no-compile torch
	@$(PIP) --no-compile --editable '.[dev]'
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/lcma
	@touch $(VENV)/.base $@

$(VENV)/.docs: $(VENV)/.dev
	@$(PIP) --no-compile --editable '.[docs]'
	@touch $@
