# make run    the main job: solve, verify, draw and replay BPipe's GPT-3 13B on eight ranks
# make test   the whole test suite        make lint   ruff and mypy
# make bench  the benchmarks              make clean  remove what the others made
# make coverage    the test suite, and which lines of the package it reached
# make wheel-test  the README and the notebooks on a wheel, in an environment of its own
# make site        the site (build/site), in an environment of its own; a warning is an error
# make proofs      the Coq proofs of proofs/; without Coq, a sentence that says so
# EXTRAS=report,test leaves the other extras out, CONSTRAINTS=build/lowest.txt takes the lowest versions
PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRAS ?= all
CONSTRAINTS ?= constraints.txt
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WHEEL := build/wheel
SITE_ENV := build/site-env
# the suite starts this program in many processes: each would compile it anew
unexport PYTHONDONTWRITEBYTECODE
# files in the order of their names: by number of tests, long files of few tests would end the run alone
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder
COVERED := bubbleproof theory verify solvers reference_exec papers
PROBLEM ?= examples/cluster/gpt3-13b-8xA100.toml

.PHONY: run test coverage wheel-test site lint bench proofs clean

run: $(READY)
	$(BIN)/bubbleproof run $(PROBLEM)

test: $(READY)
	$(PYTEST)

coverage: $(READY)
	$(PYTEST) $(COVERED:%=--cov=%) --cov-report=term

wheel-test:
	rm -rf build
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(WHEEL)/bin/python -m pip install --quiet --constraint constraints.txt "$$(ls $(WHEEL)/*.whl)[exec,report]"
	cd $(WHEEL) && bin/python -P ../../proofs_tests/shown.py ../../README.md ../../examples/researcher/*.ipynb

site: $(SITE_ENV)/.ready
	$(SITE_ENV)/bin/python -m website build/site

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.verify_speed
	$(BIN)/python -m benchmarks.pytorch_tables
	$(BIN)/python -m benchmarks.optimality --ranks 4 --time-limit 2
	$(BIN)/python -m benchmarks.solvers
	$(BIN)/python -m benchmarks.replay_many
	$(BIN)/python -m benchmarks.replay_speed

proofs:
	@$(MAKE) --no-print-directory -C proofs

$(READY): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[$(EXTRAS)]'
	touch $@

$(SITE_ENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SITE_ENV)
	$(SITE_ENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[report,site,test]'
	touch $@

build/lowest.txt: pyproject.toml proofs_tests/lowest.py
	mkdir -p build
	$(PYTHON) proofs_tests/lowest.py > $@

clean:
	rm -rf $(VENV) runs build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
