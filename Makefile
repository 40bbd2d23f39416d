# Needs python3 (3.10 or newer) and make; everything else goes into .venv. The tab's page and its
# tests also need node (20 or newer), npm and Chromium; its libraries go into frontend/node_modules.
# Paths are relative, so the checkout may be anywhere.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FAULTS := --workdir build/faults --repeats 2
STRANGERS ?= ../shared/strangers
NODE_MODULES := frontend/node_modules/.installed
BUILT := $(CURDIR)/build/static
TENSORFLOWS ?= 2.13.1 2.15.1 2.17.1 2.21.0
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz lint types check-python bench logging-cost fleet scenarios clusters faults
.PHONY: hangs harm captured partial controls agreement blind blind-learning strangers accuracy docs schema sample-logs clean
.PHONY: docs-site simulated xcheck frontend test-frontend test-browser screenshots test-versions

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## install, analyze the sample logs, and show what to do next
	@$(BIN)/stall-analyze sample_logs || test $$? -eq 4
	@printf '\nThe Stall tab:  %s --logdir sample_logs, then open http://localhost:6006/#stall\n' '$(BIN)/tensorboard'
	@printf 'Your own logs:  %s path/to/logdir\n' '$(BIN)/stall-analyze'
	@printf 'How to capture: %s --help-all\n' '$(BIN)/stall-analyze'

test: lint types docs-site check-python fuzz test-frontend test-browser  ## everything that must pass before a commit

check-python: $(VENV)/.installed-test
	$(BIN)/python -m pytest --cov

lint: $(VENV)/.installed-test  ## check the style (ruff) and look for dead code (vulture)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(VENV)/.installed-test  ## check the types (mypy)
	$(BIN)/mypy

# A minute of each commit; FUZZ_SECONDS=3600 is a campaign.
fuzz: $(VENV)/.installed-test  ## read damaged logs: native decoder, C compared with Python, whole analyses (FUZZ_SECONDS=60)
	@mkdir -p build/fuzz/corpus
	@if scripts/build_fuzzer $(BIN)/python build/fuzz/read_plane; then \
	  PYTHONHOME=$$($(BIN)/python -c 'import sys; print(sys.base_prefix)') PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	    build/fuzz/read_plane -max_total_time=$$(($(FUZZ_SECONDS) / 4)) -max_len=4096 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/fuzz/native/corpus; \
	else echo 'fuzz of the native decoder: NOT RUN, for the reason above'; fi
	$(BIN)/python -m tests.fuzz.decoders --seconds $$(($(FUZZ_SECONDS) / 4)) --seed $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.pipeline --seconds $$(($(FUZZ_SECONDS) / 2)) --seed $(FUZZ_SEED) --failures build/fuzz/failures

frontend: $(NODE_MODULES)  ## build the tab's page from frontend/ into tb_stall_plugin/static
	npm --prefix frontend run --silent build

ifeq ($(shell command -v npm),)
test-frontend test-browser:
	@echo '$@: NOT RUN, because node and npm are not installed'
else
test-frontend: $(NODE_MODULES) $(VENV)/.installed-test  ## check the page's style and types, run its tests, and check that the built page is up to date
	npm --prefix frontend run --silent lint
	npm --prefix frontend run --silent test
	@node frontend/scripts/build.mjs $(BUILT)
	@diff -rq $(BUILT) tb_stall_plugin/static || { echo 'run: make frontend' >&2; exit 1; }

test-browser: $(NODE_MODULES) $(VENV)/.installed-test  ## test the tab in Chromium, in a real TensorBoard
	@if scripts/install_chromium; then npm --prefix frontend run --silent test:browser; \
	else echo 'test-browser: NOT RUN, because there is no Chromium'; fi
endif

screenshots: $(NODE_MODULES) $(VENV)/.installed-test  ## make docs/images/ from sample_logs/
	npm --prefix frontend run --silent screenshots

bench: $(VENV)/.installed-test  ## measure how long an analysis takes on this machine, compared with XProf and TensorBoard
	$(BIN)/python benchmarks/bench.py

logging-cost: $(VENV)/.installed-test  ## measure what logging costs a first epoch, and how much of that is recognized
	$(BIN)/python benchmarks/logging_cost.py

fleet: $(VENV)/.installed-test  ## analyze 5,000 runs, also on Dask and in an object store; compare times, memory and results
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/cluster.py

scenarios: $(VENV)/.installed-test  ## train models for which the right diagnosis is known, and compare (40 minutes)
	$(BIN)/python -m tests.scenarios.run --workdir build/ledger; ledger=$$?; \
	$(BIN)/python -m tests.scenarios.faults.run $(FAULTS) && exit $$ledger

clusters: $(VENV)/.installed-test build/harm/packages/.tf_keras  ## run jobs with several workers, one of which is late, dies or never starts
	$(BIN)/python -m tests.scenarios.clusters.run

faults: $(VENV)/.installed-test  ## run the part of `make scenarios` that checks findings: faulty and fixed programs
	$(BIN)/python -m tests.scenarios.faults.run $(FAULTS)

hangs: $(VENV)/.installed-test  ## run programs that hang or are only slow, kill them, and check that reports tell them apart
	$(BIN)/python -m tests.scenarios.hangs.run --workdir build/hangs
	$(BIN)/python -m tests.scenarios.hangs.score --workdir build/hangs

HARM_PACKAGES := tf_keras ipykernel jax torch

harm: $(VENV)/.installed-test $(HARM_PACKAGES:%=build/harm/packages/.%)  ## run programs with and without a capture, and check that nothing else differs (30 minutes)
	$(BIN)/python -m tests.scenarios.harm.run --workdir build/harm --write

# Next to the environment of the tests, which needs none of these packages. A package that cannot be
# installed is skipped.
build/harm/packages/.tf_keras: WHAT := --no-deps tf_keras
build/harm/packages/.ipykernel: WHAT := ipykernel jupyter_client
build/harm/packages/.jax: WHAT := --no-deps jax jaxlib scipy
build/harm/packages/.torch: WHAT := --no-deps torch sympy networkx mpmath filelock

build/harm/packages/.%: | $(VENV)/.installed-test
	@echo "installing $* into build/harm/packages ..."
	@$(PIP) install --target $(@D)/$* $(WHAT) || rm -rf $(@D)/$*
	@touch $@

controls: $(VENV)/.installed-test  ## measure how much input slows down the steps, compared with ready batches (5 minutes)
	$(BIN)/python -m tests.scenarios.controls.run --workdir build/controls

agreement: $(VENV)/.installed-test  ## measure an epoch with the books and the profiler at once, and check that they agree (15 minutes)
	$(BIN)/python -m tests.scenarios.agreement --workdir build/agreement

captured: $(VENV)/.installed-test  ## run programs whose fault only StallCallback can see, and healthy programs (20 minutes)
	$(BIN)/python -m tests.scenarios.captured.run --workdir build/captured

partial: $(VENV)/.installed-test  ## cut the logs of `make scenarios` down to ordinary logs; check what can still be answered (trains nothing)
	$(BIN)/python -m tests.scenarios.partial.run

blind: $(VENV)/.installed-test  ## run programs whose authors did not know the detectors' rules (20 minutes)
	$(BIN)/python -m tests.scenarios.blind.run; with_profiles=$$?; \
	$(BIN)/python -m tests.scenarios.blind.captured.run && exit $$with_profiles

blind-learning: $(VENV)/.installed-test  ## like `make blind`, for programs about learning and hangs, if they are next to this checkout
	@if test -e $(STRANGERS)/run.py; then \
	  run="$(PYTHON) $(STRANGERS)/run.py"; to="--python $(CURDIR)/$(BIN)/python --tool $(CURDIR)/$(BIN)/stall-analyze"; \
	  for round in tests/scenarios/blind/learning/round*; do for mode in default stall; do \
	    PYTHONPATH=$(abspath $(STRANGERS))/numerics $$run numerics --mode $$mode --set $$round $$to \
	      --work build/blind/$$(basename $$round); done; done; \
	  for round in tests/scenarios/blind/hanging/round*; do \
	    PYTHONPATH=$(abspath $(STRANGERS))/hangs $$run hangs --set $$round $$to --work build/blind/hanging/$$(basename $$round); done; \
	else echo 'blind-learning: NOT RUN, because there is no $(STRANGERS)/run.py'; fi

strangers: $(VENV)/.installed-test  ## like `make blind`, for programs outside this repository, if they are next to it
	@if test -e $(STRANGERS)/run.py; then $(PYTHON) $(STRANGERS)/run.py time --python $(BIN)/python \
	  --tool $(BIN)/stall-analyze --work build/strangers; \
	else echo 'strangers: NOT RUN, because there is no $(STRANGERS)/run.py'; fi

accuracy: $(VENV)/.installed-test  ## write docs/explanation/accuracy.md from the last run of the scenarios, with XProf's view of them
	-$(BIN)/python -m tests.scenarios.faults.run $(FAULTS) --only-score --markdown docs/explanation/accuracy.md
	$(BIN)/python -m tests.scenarios.faults.xprof --workdir build/faults --markdown docs/explanation/accuracy.md

simulated: $(VENV)/.installed-test  ## check bucket, ledger and finding on simulated accelerators, for docs/explanation/accuracy.md
	$(BIN)/python -m tests.simulated.run --markdown docs/explanation/accuracy.md

xcheck: $(VENV)/.installed-test  ## compare our figures for device traces with XProf's, if the public logs are next to this checkout
	$(BIN)/python -m tests.xcheck.run --markdown docs/explanation/accuracy.md

test-versions: $(TENSORFLOWS:%=build/tensorflow-%/.installed)  ## test the capture with several versions of TensorFlow
	@failed=; for version in $(TENSORFLOWS); do \
	  printf '\nTensorFlow %s: ' $$version; \
	  PYTHONPATH=$(CURDIR)/analyzer:$(CURDIR) build/tensorflow-$$version/bin/python -m pytest tests/capture -p no:cacheprovider \
	    || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed with:$$failed"; exit 1; }

# As pyproject.toml names them, with the oldest Python; what needs TensorFlow or an extra is skipped.
LOWEST := numpy==1.24.0 fsspec==2023.1.0 platformdirs==3.0.0 rich==13.0.0 tensorboard==2.13.0 \
  protobuf==3.20.0 google-crc32c==1.5.0 werkzeug==2.0.0 tomli==1.1.0
LOWEST_PYTHON ?= python3.10

test-lowest: build/lowest/.installed $(VENV)/.installed-test  ## test with the oldest Python and dependencies that are supported
	PYTHONPATH=$(CURDIR)/analyzer:$(CURDIR) build/lowest/bin/python -m pytest -p no:cacheprovider \
	  @tests/without_tensorflow.txt

wheel: $(VENV)/.installed  ## build dist/; every build of the last commit gives the same bytes
	scripts/build_wheel $(BIN)/python dist

soak: $(VENV)/.installed-test  ## 10,000 requests, 1,000 analyses, 200 killed batches: check that memory does not grow and nothing is lost
	$(BIN)/python -m tests.fuzz.soak
	$(BIN)/python -m tests.fuzz.kills

schema: $(VENV)/.installed  ## write schema.json from the types of the JSON document
	$(BIN)/python -m scripts.write_schema

docs: $(VENV)/.installed-docs  ## update docs/findings/ and the outputs shown in docs/, and build the site in build/site
	$(BIN)/python -m scripts.write_findings_docs
	$(BIN)/python -m scripts.refresh_outputs
	$(BIN)/mkdocs build --quiet
	@echo 'open build/site/index.html'

docs-site: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --quiet

sample-logs: $(VENV)/.installed-test  ## record sample_logs/ again
	$(BIN)/python -m tests.scenarios.make_samples

clean:  ## remove everything that make has built
	rm -rf $(VENV) frontend/node_modules frontend/src/document.ts build dist
	rm -rf .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf *.egg-info analyzer/*.egg-info
	find analyzer tb_stall_plugin tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +
	find analyzer tb_stall_plugin -name '*.so' -delete

# Stamps: pip runs again only when what it installs has changed.
SOURCES := pyproject.toml $(wildcard analyzer/stall_analyzer/decode/*.[ch] analyzer/stall_analyzer/events/*.c tb_stall_plugin/capture/*/*.[ch])

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)

build/tensorflow-%/.installed: pyproject.toml
	@echo "installing TensorFlow $* into $(@D) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check --quiet install \
	  tensorflow-cpu==$* tensorboard fsspec platformdirs rich 'pytest>=8' 'pytest-timeout>=2.3' 'hypothesis>=6' 'jsonschema>=4'
	@touch $@

build/lowest/.installed: pyproject.toml
	@echo "installing the lowest versions into $(@D) ..."
	@$(LOWEST_PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check --quiet install $(LOWEST) \
	  six 'setuptools<81' 'pytest>=8.2' 'pytest-timeout>=2.3' 'hypothesis>=6' 'jsonschema>=4'
	@touch $@

$(NODE_MODULES): frontend/package-lock.json
	@echo "installing into frontend/node_modules ..."
	@npm --prefix frontend ci --silent
	@touch $@

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@echo "installing into $(VENV) ..."
	@$(PIP) install -e .
	@touch $@

$(VENV)/.installed-docs: $(SOURCES) | $(BIN)/python
	@echo "installing into $(VENV), with mkdocs ..."
	@$(PIP) install -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: $(SOURCES) | $(BIN)/python
	@echo "installing into $(VENV), with TensorFlow for the tests ..."
	@$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-docs
