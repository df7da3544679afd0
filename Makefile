# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Each sets up .venv in this folder first; a second run finds it ready.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
RELEASE_READY := $(VENV)/.release-ready
LOWEST := build/lowest

# An environment that is there already is not made again: it must not pass for one of another Python.
ifeq ($(origin PYTHON),command line)
ifneq ($(wildcard $(BIN)/python),)
ifneq ($(shell $(PYTHON) --version),$(shell $(BIN)/python --version))
$(error $(VENV) has $(shell $(BIN)/python --version): add VENV=build/$(notdir $(PYTHON)), or run make clean first)
endif
endif
endif

.PHONY: demo docs examples test slow portable fuzz check gpu wheel dist lowest clean setup

demo: $(READY)
	mkdir -p build
	$(BIN)/graphfield demo --out build/demo --force

examples: $(READY)
	$(BIN)/python docs/render_examples.py

# The site, in build/docs: runs the examples, needs no network, fails on any warning and any dead link.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs
	@echo "Open build/docs/index.html"

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not gpu"

portable: $(READY)
	$(BIN)/python tests/portable.py

fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m fuzz

gpu: $(READY)
	$(BIN)/python -m pytest -m gpu

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The wheel in an empty environment outside this folder: .ci/wheel
wheel: $(RELEASE_READY)
	.ci/wheel $(BIN)/python

# What a release uploads, in dist/: the archive of sources and, built from it, the wheel.
dist: $(RELEASE_READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	$(BIN)/python -m twine check --strict dist/*
	@cd dist && sha256sum *

# The fast tests with the lowest versions that pyproject.toml allows; torch too with TORCH=--torch-floor.
# What old packages call deprecated in each other is not ours to mend.
lowest: $(LOWEST)/.ready
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 --dist worksteal -W ignore::DeprecationWarning

$(LOWEST)/.ready: pyproject.toml constraints.txt .ci/lowest_versions.py
	@echo "Installing into $(LOWEST); the first time takes some minutes."
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python .ci/lowest_versions.py $(TORCH) >$(LOWEST)/pins.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/pins.txt -e '.[test]'
	@touch $@

setup: $(READY)

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

$(RELEASE_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	@touch $@

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "graphfield needs Python 3.11 or newer; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); the first time takes one to two minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build
