# make demo and make test do all of their own set-up; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup demo test test-nightly test-docker test-install lint types check bench lock clean

setup: $(READY)  ## .venv with everything in it; does nothing when it is up to date

$(READY): requirements-dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m dlag_node.solvers
	touch $(READY)

demo: setup  ## the main job: 25 real node processes, heart data; DLAG that promises its silence, SSDA, DLAG with tokens, tree
	$(BIN)/dlag compare --mode mesh --methods dlag:promise=2,ssda,dlag,tree --base ssda --preset paper --topology grid:5x5 --data heart --shards uneven:1,10 --target 1e-7 --seeds 1 --out runs/demo --force

# No process, socket or clock decides in these: two at a time.
PURE := $(addprefix tests/,methods solvers graphs paper problems wire rounds data fuzz test_rounding.py test_grids.py)
# Processes and sockets of their own, and waits: three files at a time. What is left looks at the whole machine.
LIVE := $(addprefix tests/,lab coordinator net trust kit cluster)

test: setup  ## the whole test suite
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PURE)
	$(BIN)/python -m pytest -n 3 --dist loadfile $(LIVE)
	$(BIN)/python -m pytest $(addprefix --ignore=,$(PURE) $(LIVE)) tests

test-nightly:  ## the same, with every case of the large grids that `make test` samples
	DLAG_TEST_FULL=1 $(MAKE) test

DLAG_TEST_DOCKER ?= 1  # required: no engine is a failure
test-docker: setup  ## the image and the compose file on a Docker engine; BASE_IMAGE=... for another base
	DLAG_TEST_DOCKER=$(DLAG_TEST_DOCKER) $(BIN)/python -m pytest -rs tests/docker

test-install: setup  ## the wheel into a fresh environment, with all that it needs, by wheels only
	DLAG_TEST_INSTALL=1 $(BIN)/python -m pytest tests/kit/test_wheel.py

lint: setup  ## formatting, style, who may import whom
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup  ## strict types
	$(BIN)/mypy

check: lint types test

bench: setup  ## the yardsticks; prints ratios, takes minutes
	$(BIN)/python benchmarks/solver_steps.py
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/survival.py
	$(BIN)/python benchmarks/flood.py
	$(BIN)/python benchmarks/watching.py

lock:  ## pin every dependency again, with hashes
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --quiet --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra lab --extra dev -o requirements-dev.txt pyproject.toml
	$(VENV)-lock/bin/pip-compile --quiet --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra lab -c requirements-dev.txt -o requirements.txt pyproject.toml
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis runs build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
