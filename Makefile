PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# as pip would, but on all cores and without the tests of other packages
BYTECODE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
.DEFAULT_GOAL := help
.PHONY: help demo serve test prepared types docs pythons bench reproduce clean

help:  ## what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/compiled  ## the main job on a small unknown system; pictures in out/
	@$(BIN)/causalarms demo --out out

serve: .venv/compiled  ## a study that plays itself, on a live page; PORT=8000
	@$(BIN)/causalarms serve out/living.db --demo --port $(or $(PORT),8000)

test: .venv/ready-test  ## lint, types, import contract, tests, doctests, README examples
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/lint-imports --no-cache
	@$(MAKE) --no-print-directory -j 2 prepared
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder -q

# two at a time, in this order: those after `types` use kernels of those before
prepared: .venv/kernels-search .venv/kernels-posterior types \
	.venv/kernels-sampled .venv/kernels-learners .venv/kernels-lookahead

types: .venv/ready-test
	$(BIN)/mypy

.venv/kernels-%: .venv/ready-test $(shell find src -name '*.py')
	@$(ONE_THREAD) $(BIN)/python tests/contracts/compile_kernels.py $*
	@touch $@

docs: .venv/ready-docs  ## the site of these documents in out/site; warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open out/site/index.html"

pythons:  ## install and test under every supported Python that is found here
	@$(PYTHON) tools/pythons.py $(if $(WHOLE),--whole)

bench: .venv/ready-test  ## fast kernels against plain references, in one run
	$(BIN)/python benchmarks/kernels.py tables

reproduce: .venv/ready-test  ## every figure and number of the paper; RUNS=100 for its scale
	@$(BIN)/causalarms reproduce --out out/reproduction $(if $(RUNS),--runs $(RUNS))

.venv/ready: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(INSTALL) -e '.[plot,serve]'
	@$(BYTECODE)
	@touch $@

.venv/compiled: .venv/ready
	@echo "compiling (once, a minute or two)"
	@$(BIN)/causalarms demo --rounds 200 --out .venv/demo > /dev/null
	@touch $@

.venv/ready-docs: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(INSTALL) -e '.[docs]'
	@touch $@

.venv/ready-test: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(INSTALL) -e '.[test]'
	@$(BYTECODE)
	@touch .venv/ready $@

clean:  ## remove the environment and all output
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis
