# `make demo` and `make test` each work alone on a new clone: they need Python 3.11 or newer and a C library.
.PHONY: demo test lint coverage clean
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

coverage: $(VENV)/.dev
	$(BIN)/pytest -m "not slow" -n auto --maxprocesses 4 --cov --cov-report=term tests/schemes_db tests/verify

clean:
	rm -rf $(VENV) build dist *.egg-info

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
