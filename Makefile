# make run    the main job: solve, verify, draw and replay BPipe's GPT-3 13B on eight ranks
# make test   the whole test suite        make lint   ruff and mypy
# make bench  the benchmarks              make clean  remove what the others made
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROBLEM ?= examples/gpt3-13b-8xA100.toml

.PHONY: run test lint bench clean

run: $(READY)
	$(BIN)/bubbleproof run $(PROBLEM)

test: $(READY)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile

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

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]'
	touch $@

clean:
	rm -rf $(VENV) runs build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
