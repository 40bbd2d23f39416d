# Needs python3 (3.10 or newer) and make; everything else goes into .venv.
# Paths are relative, so the checkout may lie anywhere.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FAULTS := --workdir build/faults --repeats 2
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test lint types check-python bench scenarios faults accuracy docs sample-logs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## install, analyse the sample logs, say what to do next
	@$(BIN)/stall-analyze sample_logs || test $$? -eq 4
	@printf '\nYour own logs:  %s path/to/logdir\n' '$(BIN)/stall-analyze'
	@printf 'How to capture: %s --help\n' '$(BIN)/stall-analyze'

test: lint types check-python  ## everything that must pass before a commit

check-python: $(VENV)/.installed-test
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-test  ## style, by ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test  ## types, by mypy
	$(BIN)/mypy

bench: $(VENV)/.installed-test  ## the figures of the README, on this machine
	$(BIN)/python benchmarks/bench.py

scenarios: $(VENV)/.installed-test  ## train models whose right answer is known, and compare (40 minutes)
	$(BIN)/python -m tests.scenarios.run; ledger=$$?; \
	$(BIN)/python -m tests.scenarios.faults.run $(FAULTS) && exit $$ledger

faults: $(VENV)/.installed-test  ## the half of it that checks findings: faulty and mended programs
	$(BIN)/python -m tests.scenarios.faults.run $(FAULTS)

accuracy: $(VENV)/.installed-test  ## docs/ACCURACY.md from what was trained last, with XProf on it
	-$(BIN)/python -m tests.scenarios.faults.run $(FAULTS) --only-score --markdown docs/ACCURACY.md
	$(BIN)/python -m tests.scenarios.faults.xprof --workdir build/faults --markdown docs/ACCURACY.md

docs: $(VENV)/.installed  ## docs/findings/, from the detectors
	$(BIN)/python -m scripts.write_findings_docs

sample-logs: $(VENV)/.installed-test  ## record sample_logs/ anew
	$(BIN)/python -m tests.scenarios.make_samples

clean:  ## remove everything that make made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf *.egg-info analyzer/*.egg-info
	find analyzer tb_stall_plugin tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +
	find analyzer -name '*.so' -delete

# Stamps: pip runs again only when what it installs has changed.
SOURCES := pyproject.toml $(wildcard analyzer/stall_analyzer/decode/*.c analyzer/stall_analyzer/decode/*.h)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@echo "installing into $(VENV) ..."
	@$(PIP) install -e .
	@touch $@

$(VENV)/.installed-test: $(SOURCES) | $(BIN)/python
	@echo "installing into $(VENV), with TensorFlow for the tests ..."
	@$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.installed
