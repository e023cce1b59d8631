# `make` sets up the environment and computes everything that needs no data of yours. `make help` lists the targets.

PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
BIN := .venv/bin
PACKAGES := .venv/.packages
INSTALLED := .venv/.installed

.DEFAULT_GOAL := all
.PHONY: all env demo report crate verify test test-all test-chaos lint docs lock clean help

all: $(INSTALLED) ## compute the miniature pipeline, and render tables and figures from the published evidence (default)
	$(BIN)/snakemake --cores $(CORES) --quiet reason -- all

env: $(INSTALLED) ## set up the environment, .venv, and do nothing else

demo: $(INSTALLED) ## predict five tiles of PathMNIST by a published model, with the most similar training tiles of its class and of others
	$(BIN)/clailearn predict results/published/pathmnist/models/clai-m workflow/demo --votes 2

report: $(INSTALLED) ## write report/report.html, Snakemake's own report of tables, figures and claims
	$(BIN)/snakemake --cores $(CORES) outputs
	mkdir -p report
	$(BIN)/snakemake --report report/report.html outputs

crate: $(INSTALLED) ## write report/crate, a Workflow Run RO-Crate of outputs, records of runs, settings and data with checksums
	@test ! -L .venv || { echo ".venv is a link; make changes no environment behind a link. Delete the link and give the same command again"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/docs.lock
	rm -rf report/crate
	$(BIN)/python workflow/scripts/write_crate.py report/crate

verify: $(INSTALLED) ## compute published numbers again from published predictions, and compare; fail if one differs
	$(BIN)/snakemake --cores $(CORES) verify

# Snakemake and pip keep caches below HOME, or here where that cannot be written.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export XDG_CACHE_HOME ?= $(CURDIR)/.snakemake/cache
endif

# Of two makes at once the second waits until the first has set up the environment. The lock ends with its process.
ifndef HOLDS_LOCK
LOCK := import fcntl, subprocess, sys; file = open("Makefile", "r+"); fcntl.flock(file, fcntl.LOCK_EX); sys.exit(subprocess.call(sys.argv[1:]))

$(INSTALLED): envs/requirements.lock pyproject.toml
	@HOLDS_LOCK=yes $(PYTHON) -c '$(LOCK)' $(MAKE) --no-print-directory $@
else
# This step, `docs` and `crate` need a network. Behind a link it would empty the environment of another clone, so it refuses one.
$(PACKAGES): envs/requirements.lock
	@test ! -L .venv || { echo ".venv is a link, and its packages are older than envs/requirements.lock; make empties no environment behind a link. Delete the link and give the same command again"; exit 1; }
	@$(PYTHON) -c 'import os, re, sys; odd = re.sub(r"[\w./+@%,:=~-]", "", os.getcwd()); odd and sys.exit(f"found {odd[0]!r} in the path {os.getcwd()}; Snakemake cannot call Python there. Move this folder to a path without it")'
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11, 4) or sys.exit(f"$(PYTHON) is Python {v.major}.{v.minor}.{v.micro}; 3.11.4 or newer is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r envs/requirements.lock
	@touch $@

$(INSTALLED): $(PACKAGES) pyproject.toml
	@test ! -L .venv || { echo ".venv is a link, and pyproject.toml is newer than what it has; make changes no environment behind a link. Delete the link and give the same command again"; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@
endif

# The tests share the cores. Those of a file of tests/workflow share a copy of the repository, so they run in one process; those of
# chaos have a copy each.
TESTS := $(BIN)/python -m pytest --numprocesses auto
LIBRARY := --dist worksteal tests/unit tests/hostile tests/reproduction src

test: $(INSTALLED) ## run all but the slow tests: of the packages, the published numbers, the workflow on miniature data
	CLAI_HOSTILE_SCALE=0.1 $(TESTS) -m "not slow" $(LIBRARY)
	$(TESTS) -m "not slow and not chaos" --dist loadfile tests/workflow

test-all: $(INSTALLED) ## run all tests but those of chaos: also more hostile inputs, clusters, reruns, printed commands
	$(TESTS) $(LIBRARY)
	$(TESTS) -m "not chaos" --dist loadfile tests/workflow

test-chaos: $(INSTALLED) ## kill and disturb the workflow in many ways; it must end with the same bytes
	$(TESTS) -m chaos tests/workflow

lint: $(INSTALLED) ## check style, types and the workflow
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

docs: $(INSTALLED) ## build the site of the documentation, docs/_build/index.html
	@test ! -L .venv || { echo ".venv is a link; make changes no environment behind a link. Delete the link and give the same command again"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/docs.lock
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going $(SPHINXOPTS) docs docs/_build

COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

lock: ## resolve envs/*.lock from envs/*.in; needs uv
	$(COMPILE) --output-file envs/requirements.lock envs/requirements.in
	$(COMPILE) --constraints envs/requirements.lock --output-file envs/docs.lock envs/docs.in

clean: ## delete the environment, the miniature's results, reports, the site and caches; downloads and full runs stay
	rm -rf .venv results/mini logs/mini paper_figures/mini paper_figures/mini*.* report docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis src/clailearn.egg-info

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  CORES=N after a target: so many cores instead of all"
