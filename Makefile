# Two commands do all the set-up: `make repro` (the main job) and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: install
install: $(VENV)/installed ## Make the virtual environment

.PHONY: repro
repro: install ## Freeze, score and audit everything that a package index serves
	# tables and baselines are made again where a clone lacks them; only then may data of other systems be missing
	dvc repro $$(dvc stage list --name-only | grep -E '^(freeze|baseline)-')
	dvc repro --allow-missing
	cxrspec leaderboard
	cxrspec audit
	@cxrspec list
	@echo "Not run here: the definitions of registry/dvc.yaml, whose sources are outside a package index (dvc repro -P)."

.PHONY: test
test: install ## Run the tests
	$(BIN)/python -m pytest -q -n 2

.PHONY: lint
lint: install ## Check style, types and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: clean
clean: ## Remove the virtual environment and caches, never the registry
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
