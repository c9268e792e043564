# One environment, one command per job. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where the real data sets lie, if they do; the data tests skip and say so otherwise.
ifneq ($(wildcard ../shared/data),)
export LABELMEM_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help setup demo test lint bench clean
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
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## everything: lint, doctests (README included) and tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

bench: $(STAMP) ## ratios of running times, measured in one run
	$(BIN)/python benchmarks/run.py

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
