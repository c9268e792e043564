# One environment, one command per job. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where the real data sets lie, if they do; the data tests skip and say so otherwise.
ifneq ($(wildcard ../shared/data),)
export LABELMEM_DATA ?= $(abspath ../shared/data)
endif

# How long `make soak` lasts.
SECONDS ?= 3600

.PHONY: help setup demo test test-paper soak lint bench docs wheel check-extras clean
.DEFAULT_GOAL := help

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make the environment in .venv

$(STAMP): pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]' -e 'paper[report,ray]'
	@touch $@

demo: $(STAMP) ## train, adapt and compare on bundled data; writes report.html
	$(BIN)/labelmem demo --out report.html

lint: $(STAMP) ## ruff, mypy and the import contracts
	$(BIN)/ruff check src tests benchmarks examples docs paper
	$(BIN)/ruff format --check src tests benchmarks examples paper
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## everything: lint, doctests (README included) and tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

test-paper: $(STAMP) ## the tests of the paper's package alone
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q paper

soak: $(STAMP) ## streams in many threads against the same ones alone, for an hour (SECONDS=60: a minute)
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak.py --seconds $(SECONDS)

bench: $(STAMP) ## ratios of running times, measured in one run
	$(BIN)/python benchmarks/run.py

docs: $(STAMP) ## the documentation, as pages in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A clean environment has nothing but what a wheel asks for; commands run away from the sources. The
# library is tried alone first: it must not need the paper's package, nor bring its readers.
wheel: $(STAMP) ## build both wheels and sdists, install them in a clean environment, and run them there
	rm -rf dist build/wheel
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist paper
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet -c constraints.txt "$$(echo dist/labelmem-*.whl)[demo]"
	build/wheel/bin/python -m pip check
	cd build/wheel && bin/labelmem demo --quick
	! $(PYTHON) -m zipfile -l dist/labelmem-*.whl | grep -iE 'png\.py|omniglot|labelmem_paper'
	! tar -tzf dist/labelmem-*.tar.gz | grep -E '^[^/]+/paper/'
	build/wheel/bin/python -m pip install --quiet -c constraints.txt "$$(echo dist/labelmem_paper-*.whl)[report]" --find-links dist
	build/wheel/bin/python -m pip check
	cd build/wheel && bin/labelmem-paper reproduce table2 --dataset synthetic --size smoke --method counter --method dntm \
		&& bin/labelmem-paper report --size smoke
	build/wheel/bin/python -m pip install --quiet --no-deps --force-reinstall dist/*.tar.gz
	build/wheel/bin/python -m pip check
	cd build/wheel && bin/labelmem --version && bin/labelmem-paper --version

# Each extra alone, over the core: what one of them brings must not hide what another forgot. torch is
# unpacked once, and the environments are copies of links to it.
check-extras: $(STAMP) ## install every extra alone in a clean environment, and ask `pip check` (minutes)
	rm -rf build/extras
	$(BIN)/python -m build --wheel --outdir build/extras
	$(PYTHON) -m venv build/extras/core
	build/extras/core/bin/python -m pip install --quiet --no-compile -c constraints.txt build/extras/*.whl
	build/extras/core/bin/python -m pip check
	set -e; for extra in $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies'])"); do \
		echo "$$extra:"; \
		cp -al build/extras/core build/extras/one; \
		build/extras/one/bin/python -m pip install --quiet --no-compile -c constraints.txt "$$(echo build/extras/*.whl)[$$extra]"; \
		build/extras/one/bin/python -m pip check; \
		rm -rf build/extras/one; \
	done

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist site report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
