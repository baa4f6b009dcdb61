# Everything a developer or a user does, by name. `make help` lists the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := apexrl hmasd litaagent
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
ARGS ?=
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
export PYTHONHASHSEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format type layers deps pytest test-search test-browser test-wheels house golden fuzz chaos docs dist clean verify-world

help: ## list the targets
	@grep -hE '^[a-zA-Z%_-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with everything the project needs (does nothing when it is up to date)

# scml-agents declares tensorflow and others that no Standard agent imports: it is installed without its dependencies.
$(READY): constraints.txt requirements-dev.txt $(foreach name,$(PACKAGES),packages/$(name)/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11, 5) else f"Python {sys.version.split()[0]} found, 3.11.5 or newer needed: make setup PYTHON=/path/to/python3.11")'
	@echo "installing into $(VENV): 3 GB, four to eight minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt \
		-e "packages/apexrl[ray,charts,onnx,wandb]" -e packages/hmasd -e "packages/litaagent[ray,dashboard,hmasd]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps scml-agents
	@touch $@

$(BENCH_READY): $(READY) benchmarks/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps -r benchmarks/requirements.txt
	@touch $@

run: setup ## the main job end to end at a small scale
	$(BIN)/lita demo $(ARGS)

test: setup lint type layers deps docs pytest ## set-up, lint, types, layering, dependencies, docs, tests

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: setup ## mypy --strict on the packages
	$(BIN)/mypy

layers: setup ## import-linter: the layers of the architecture
	$(BIN)/lint-imports --no-cache

deps: setup ## unused or undeclared dependencies
	@for name in $(PACKAGES); do (cd packages/$$name && ../../$(BIN)/deptry src) || exit 1; done

pytest: setup ## the tests, in parallel
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-search: setup ## the properties with new random examples, to find what the fixed ones of make test miss
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n 2 --dist worksteal -m hypothesis $(ARGS)

test-browser: setup ## the dashboard in a real Chromium (CHROMIUM=/path/to/chromium names one)
	@browser="$$(scripts/chromium.sh)" && LITA_BROWSER="$$browser" $(BIN)/python -m pytest -n 0 packages/litaagent/tests/browser $(ARGS)

test-wheels: setup ## sdists and wheels built and checked, each wheel installed alone in a clean environment, and used
	LITA_WHEELS=1 $(BIN)/python -m pytest -n 0 tests/wheels $(ARGS)

golden: setup ## 72 worlds and a small run of every trainer against what is pinned, to the last bit (4 CPU minutes)
	$(BIN)/python -m benchmarks.golden worlds --check benchmarks/results/golden_worlds.json
	$(BIN)/python -m benchmarks.golden trainers --check benchmarks/results/golden_trainers.json

fuzz: setup ## damage every kind of file that a command reads; nothing may be read as something else, crash or hang
	$(BIN)/python -m benchmarks.fuzz $(ARGS)

chaos: setup ## kill, stop and starve every resumable command at random moments, and compare the results
	$(BIN)/python -m benchmarks.chaos $(ARGS)

house: setup ## how the source tree reads from outside: folders, public names, cycles, repeated code
	$(BIN)/python scripts/house.py $(ARGS)

docs: setup ## build the documentation; a warning or a broken link inside it is an error
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html docs docs/_build/html
	$(BIN)/python scripts/links.py docs/_build/html

dist: setup ## build sdist and wheel of each package into dist/, and check what a package index would
	@rm -rf dist
	@for name in $(PACKAGES); do $(BIN)/python -m build --no-isolation --outdir dist packages/$$name || exit 1; done
	$(BIN)/python -m twine check --strict dist/*

verify-world: setup ## the fast world against scml's own, contract by contract (ARGS="--configs 200")
	$(BIN)/python -m litaagent_std.world.scml.verify $(ARGS)

bench-%: setup $(BENCH_READY) ## a benchmark: make bench-NAME [ARGS="--quick"]
	$(BIN)/python -m benchmarks.$(subst -,_,$*) $(ARGS)

clean: ## remove what can be made again
	rm -rf $(VENV) dist build docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
