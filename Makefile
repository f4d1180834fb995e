PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo serve test bench reproduce clean

help:  ## what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/compiled  ## the main job on a small unknown system; pictures in out/
	@$(BIN)/causalarms demo --out out

serve: .venv/compiled  ## a study that plays itself, on a live page; PORT=8000
	@$(BIN)/causalarms serve out/living.db --demo --port $(or $(PORT),8000)

test: .venv/ready-test  ## lint, types, import contract, tests, doctests, README examples
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope -q

bench: .venv/ready-test  ## fast kernels against plain references, in one run
	$(BIN)/python benchmarks/run.py

reproduce: .venv/ready-test  ## every figure and number of the paper; RUNS=100 for its scale
	@$(BIN)/causalarms reproduce --out out/reproduction $(if $(RUNS),--runs $(RUNS))

.venv/ready: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot,serve]'
	@touch $@

.venv/compiled: .venv/ready
	@echo "compiling (once, a minute or two)"
	@$(BIN)/causalarms demo --rounds 200 --out .venv/demo > /dev/null
	@touch $@

.venv/ready-test: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch .venv/ready $@

clean:  ## remove the environment and all output
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis
