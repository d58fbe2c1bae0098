# `make help` lists the tasks. Nothing needs to be installed but Python 3.11+ and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test budget check lint fast format bench soak spark35 spark40 lock java docs servers clean

help: ## list the tasks
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(READY) ## make .venv with esker and everything it needs

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Esker needs Python 3.11 or later; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV), once: first the environment and its installer"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@echo "then PySpark and everything else in requirements/dev.txt (about 1 GB on disk; a minute or more)"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@echo "$(VENV) is ready"
	@touch $@

demo: setup ## a whole story on the embedded catalog
	@$(BIN)/python examples/demo.py

# A folder for one run of the tests: what another run left behind is nothing to it, and it leaves nothing.
SCRATCH := scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT &&

test: setup servers lint ## everything that CI runs
	@$(SCRATCH) $(BIN)/python -m pytest --basetemp "$$scratch/t" -n 2 --dist loadgroup -m 'not soak' -p tests.budget --budget tests

budget: setup ## take the times of the last `make test` as the budget of the tests (tests/budget.json)
	@$(BIN)/python -m tests.budget

check: lint fast ## format, lint, types, import rules, fast tests

lint: setup ## format, lint, types, import rules
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@told=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$told"; exit 1; }

fast: setup ## tests that need no Spark
	@$(BIN)/python -m pytest -m 'not (spark or process or server or soak)' tests

format: setup ## format the code
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: setup ## benchmarks: ratios measured side by side in one run; fails where one misses what is wanted
	@$(BIN)/python -m benchmarks

soak: setup spark35 spark40 ## long campaigns, and earlier versions of Spark
	@tests/servers/install.sh soak
	@mkdir -p .cache && rm -f .cache/catalogs.json
	@status=0; CATALOG_RESULTS=$(CURDIR)/.cache/catalogs.json $(BIN)/python -m pytest -m soak tests || status=$$?; \
	  $(BIN)/python -m tests.conformance.results .cache/catalogs.json; exit $$status

# What the foundation and the loader promise: engine, ledger, contracts, load, pipelines, files, kills, readers.
# Without the example of two catalogues, whose SQL reads XML.
PROMISES := tests/engine tests/ledger tests/contracts tests/load tests/pipeline tests/sources/files tests/scenarios \
  $(addprefix tests/sources/test_,files.py handed_over.py table.py transformed.py)
SMOKE := tests/load/test_keyed.py tests/load/test_types.py tests/pipeline/test_run.py tests/scenarios/test_kill.py

spark35: .cache/spark35/.ready servers ## foundation and loader on Spark 3.5, which Glue and EMR run
	@$(SCRATCH) .cache/spark35/bin/python -m pytest --basetemp "$$scratch/t" -n 2 --dist loadgroup -m 'not soak' $(PROMISES) \
	  --ignore tests/scenarios/test_catalogue_example.py

spark40: .cache/spark40/.ready servers ## a short look at Spark 4.0
	@.cache/spark40/bin/python -m pytest -m 'not soak' $(SMOKE)

.cache/spark%/.ready: requirements/dev.txt requirements/spark%.txt | $(READY)
	@echo "setting up .cache/spark$*: everything in requirements/dev.txt, with another PySpark"
	@$(PYTHON) -m venv --clear .cache/spark$*
	@$(BIN)/uv pip install --quiet --python .cache/spark$*/bin/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python .cache/spark$*/bin/python --require-hashes -r requirements/spark$*.txt
	@$(BIN)/uv pip install --quiet --python .cache/spark$*/bin/python --no-deps --no-build-isolation -e .
	@.cache/spark$*/bin/python -m tests.servers.class_archive
	@touch $@

java: setup ## compile Esker's Java classes, after a change of their source
	@$(BIN)/python -m tests.compile_java

docs: setup ## write the reference pages anew
	@$(BIN)/python docs/generate.py

servers: setup ## install the servers that tests start (Debian and root only; elsewhere it says what is missing)
	@tests/servers/install.sh

lock: setup ## pin dependencies and jars anew
	@$(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --all-extras --group dev pyproject.toml -o requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --group servers -o requirements/servers.txt
	@for group in moto trino spark35 spark40; do $(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --group $$group -o requirements/$$group.txt || exit 1; done
	@grep -A100 '^uv==' requirements/dev.txt | awk 'NR==1 || /^    --hash/ {print; next} {exit}' > requirements/uv.txt
	@$(BIN)/python -c "from pathlib import Path; from esker.engine.jars import write_lock; write_lock(Path('src/esker/engine/jars.lock.json'), Path('.cache/lock.log'))"

clean: ## remove what make has made
	rm -rf $(VENV) .demo .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
