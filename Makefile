# The commands of the house; `make` alone lists them. Each does all of its own set-up, in .venv,
# from pins with hashes, and sets up nothing again until a requirement changes.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-aegra check fix golden dev lock clean which-python again

VENV := .venv
BIN := $(VENV)/bin
# pip is loud, so what it says is kept back, and shown where it fails.
QUIETLY := sh -c '"$$@" > $(VENV)/.log 2>&1 || { cat $(VENV)/.log; exit 1; }' sh
PIP := $(QUIETLY) $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# What to run and how: `make test TESTS=tests/unit ARGS="-k cut"`, `make lock ARGS=--upgrade`.
TESTS ?= tests
ARGS ?=
# Half of the suite waits for processes: workers share it. `WORKERS=` runs it in one process.
WORKERS ?= -n auto --maxprocesses=4 --dist worksteal
# Which Python makes .venv: `make clean test PYTHON=python3.13`; else the first of these that will do.
PYTHONS := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)
# The second number of the oldest version that will.
OLDEST := 11

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run $(VENV)/.project ## Show everlong at work, with no key and no database
	@$(BIN)/everlong demo

test: $(VENV)/.dev $(VENV)/.project ## Run the whole suite: unit, property, scenarios, integration
	$(BIN)/python -m pytest $(TESTS) $(WORKERS) $(ARGS)

test-aegra: ## Test on two aegra servers: needs Python 3.12 or newer, and redis-server
	@command -v redis-server > /dev/null || \
		{ echo "The servers need Redis; on Debian: apt-get install redis-server" >&2; exit 1; }
	@$(MAKE) --silent VENV=.venv-aegra OLDEST=12 .venv-aegra/.aegra .venv-aegra/.project
	.venv-aegra/bin/python -m pytest tests/aegra $(ARGS)

check: $(VENV)/.dev $(VENV)/.project ## Check format, lint, types and the layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

fix: $(VENV)/.dev ## Format, and mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

golden: $(VENV)/.dev $(VENV)/.project ## Rewrite the golden files; read the difference before you commit
	$(BIN)/python -m pytest $(TESTS) --update-golden $(ARGS)

dev: $(VENV)/.dev $(VENV)/.project ## Serve the graph for development, on 127.0.0.1
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --no-browser $(ARGS)

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links $(ARGS)

lock: $(VENV)/.folder ## Pin requirements/*.txt anew, for Python 3.11 to 3.14
	@$(PIP) install --require-hashes -r requirements/lock.txt
	$(UV_COMPILE) --extra cli --extra embedded pyproject.toml requirements/run.in -o requirements/run.txt
	$(UV_COMPILE) requirements/dev.in -o requirements/dev.txt
	$(UV_COMPILE:3.11=3.12) requirements/aegra.in -o requirements/aegra.txt
	$(UV_COMPILE:3.11=3.12) requirements/aegra-test.in -o requirements/aegra-test.txt
	$(UV_COMPILE) requirements/lock.in -o requirements/lock.txt

clean: ## Remove the set-up and the caches; .everlong, which holds data, stays
	rm -rf $(VENV) .venv-aegra build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache \
		.hypothesis .langgraph_api
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is newer than what it was made from, so nothing is installed twice.
# The build back end comes with run.txt: without it, a build would fetch one that nobody pinned.

$(VENV)/.run: requirements/run.txt $(VENV)/.folder
	@echo "==> Installing requirements/run.txt (half a minute, 65 packages)"
	@$(PIP) install --require-hashes -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "==> Installing requirements/dev.txt (about a minute, 50 packages)"
	@$(PIP) install --require-hashes --no-build-isolation -r $<
	@touch $@

$(VENV)/.aegra: requirements/aegra.txt requirements/aegra-test.txt $(VENV)/.run
	@echo "==> Installing requirements/aegra.txt (about a minute, 50 packages)"
	@$(PIP) install --require-hashes --no-build-isolation $(patsubst %,-r %,$(filter %.txt,$^))
	@touch $@

$(VENV)/.project: pyproject.toml $(VENV)/.run
	@echo "==> Installing everlong from this folder"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# A virtual environment knows the place where it was made: moved, copied or broken, it is made anew.
STALE := $(shell { test "`cat $(VENV)/.folder`" = "`pwd`" && $(BIN)/python -c ''; } 2>&- || echo again)

$(VENV)/.folder: $(STALE)
	@python=`$(MAKE) which-python` || exit 1; \
	echo "==> Creating $(VENV) with $$python"; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV) && pwd > $@

which-python:
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, $(OLDEST)) <= sys.version_info < (3, 15))' \
			2>/dev/null; then command -v "$$python"; exit; fi; \
	done; \
	echo "everlong needs Python 3.$(OLDEST) to 3.14 with its venv module; tried: $(PYTHONS)." >&2; \
	echo "Install one (on Debian: python3 and python3-venv), or name it: make PYTHON=/path/to/python" >&2; \
	exit 1
