# One environment, one command per job. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where the real data sets lie, if they do; the data tests skip and say so otherwise.
ifneq ($(wildcard ../shared/data),)
export LABELMEM_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help setup demo test lint bench docs wheel clean
.DEFAULT_GOAL := help

help: ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## make the environment in .venv

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## train, adapt and compare on bundled data; writes report.html
	$(BIN)/labelmem demo --out report.html

lint: $(STAMP) ## ruff, mypy and the import contracts
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## everything: lint, doctests (README included) and tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

bench: $(STAMP) ## ratios of running times, measured in one run
	$(BIN)/python benchmarks/run.py

docs: $(STAMP) ## the documentation, as pages in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A clean environment has nothing but what the wheel asks for; the demo runs away from the sources.
wheel: $(STAMP) ## build wheel and sdist, and run the demo from the wheel in a clean environment
	rm -rf dist build/wheel
	$(BIN)/python -m build
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet -c constraints.txt "$$(echo dist/*.whl)[demo]"
	build/wheel/bin/python -m pip check
	cd build/wheel && bin/labelmem demo

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist site report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
