# make run: install into .venv and run the main job. make test: install and run the tests.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-all lint bench
.DELETE_ON_ERROR:

run: .venv/run
	$(BIN)/python -m launch.pipeline

test: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist loadfile

test-all: .venv/dev
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "slow or not slow"

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: .venv/dev
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@ .venv/run
