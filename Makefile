# What a person or CI does with this checkout; `make help` lists it. Everything lives in .venv, nothing is installed
# outside the checkout.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.set-up
PIP := $(BIN)/python -m pip --disable-pip-version-check
SDKS := $(or $(VIDRELAY_SDKS),.venv-sdks)
SDK_STAMPS := $(patsubst tests/sdks/environments/%.txt,$(SDKS)/%/.set-up,$(wildcard tests/sdks/environments/*.txt))

# Without its bytecode every process that the tests and the benchmark start would compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test sdks sim prove check format bench bench-doors pictures clean

help: ## list what can be done here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the vidrelay command and everything the other targets need

# The stamp is made anew only when what is installed would change; an editable install follows src/ by itself.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "vidrelay needs Python 3.11 or newer; say which one: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## from one prompt to one MP4, with the built-in renderer: no key, no network, nothing paid
	@$(BIN)/python scripts/demo.py

test: $(STAMP) ## run every test (five to seven minutes on two cores)
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

sdks: $(STAMP) $(SDK_STAMPS) ## run the providers' own SDKs against the simulator and through the doors (their environments: three minutes, once)
	@VIDRELAY_SDKS=$(abspath $(SDKS)) $(BIN)/python -m pytest tests/sdks -n 4

$(SDKS)/%/.set-up: tests/sdks/environments/%.txt
	@echo "setting up $(SDKS)/$*"
	@$(PYTHON) -m venv $(SDKS)/$*
	@$(SDKS)/$*/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

SEEDS ?= 50

sim: $(STAMP) ## simulate the whole relay under every trouble on SEEDS=n seeds (50); a seed that fails says how to replay it
	@$(BIN)/python -m vidrelay.testing.simulation --seeds $(SEEDS)

prove: $(STAMP) ## the long proof, whole (an hour): seeds, kills, deliberate bugs, the disk's faults, attacks
	@$(BIN)/python scripts/prove.py

check: $(STAMP) ## what must hold before a commit: format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(STAMP) ## format the code and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## measure speed, start and memory beside a bare route (two minutes; never fails on timing)
	@$(BIN)/python -m bench

bench-doors: $(STAMP) ## the table of what official SDKs cost, directly and through vidrelay (`make sdks` first)
	@$(BIN)/python -m bench.doors

pictures: $(STAMP) ## make the README's picture anew from a real demo run
	@$(BIN)/python docs/images/make_pictures.py

clean: ## remove what make made, .venv included
	@rm -rf .venv .venv-sdks demo-state build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
