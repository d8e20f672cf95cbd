# `make demo` and `make test` each work alone on a new clone: they need Python 3.11 or newer and a C library.
.PHONY: demo test lint coverage fuzz clean
SHELL := /bin/bash
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

demo: $(VENV)/.base
	@$(BIN)/lcma demo

test: $(VENV)/.dev
	$(BIN)/pytest -m "not slow" -n auto --maxprocesses 4 $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests of schemes_db and verify with their coverage, which must reach 90%; then the others, which tracing would slow.
coverage: $(VENV)/.dev
	$(MAKE) test ARGS="tests/schemes_db tests/verify --cov --cov-report=term $(ARGS)"
	$(MAKE) test ARGS="--ignore=tests/schemes_db --ignore=tests/verify $(ARGS)"

CASES ?= 10000
SEED ?= 2
fuzz: $(VENV)/.dev
	$(BIN)/python tests/schemes_db/fuzz_formats.py $(CASES) $(SEED)
	$(BIN)/python tests/verify/fuzz_verdicts.py $(CASES) $(SEED)
	$(BIN)/python tests/kernels/exact/fuzz_products.py $(CASES) $(SEED)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "lcma needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/.python
	@$(PIP) --editable .
	@touch $@

# torch first and alone: with it in place no other package can pull another build of it.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.python
	@$(PIP) torch
	@$(PIP) --editable '.[dev]'
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/lcma
	@touch $(VENV)/.base $@
