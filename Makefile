# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Each sets up .venv in this folder first; a second run finds it ready.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo examples test slow portable fuzz check gpu clean setup

demo: $(READY)
	$(BIN)/graphfield demo --out build/demo --force

examples: $(READY)
	$(BIN)/python docs/render_examples.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

slow: $(READY)
	$(BIN)/python -m pytest -m "slow and not gpu"

portable: $(READY)
	$(BIN)/python tests/portable.py

fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m fuzz

gpu: $(READY)
	$(BIN)/python -m pytest -m gpu

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "graphfield needs Python 3.11 or newer; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); the first time takes one to two minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build
