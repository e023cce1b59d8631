# `make` sets up the environment and computes everything that needs no data of yours. `make help` lists the targets.

PYTHON ?= python3
CORES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := all
.PHONY: all report verify article crate environment test test-all hostile chaos lint benchmark gpu-check readme lock clean help

all: $(INSTALLED) ## compute the miniature pipeline, and render tables and figures from the published evidence (default)
	$(BIN)/snakemake --cores $(CORES) all

report: $(INSTALLED) ## write report/report.html: tables, figures, claims, runs and settings in one file
	$(BIN)/snakemake --cores $(CORES) all pages
	$(BIN)/snakemake --report report/report.html all pages

verify: $(INSTALLED) ## compute published numbers again from published predictions, and compare; fails if one differs
	$(BIN)/snakemake --cores $(CORES) verify

article: $(INSTALLED) ## typeset report/article.pdf, a short replication article; needs pdflatex
	$(BIN)/snakemake --cores $(CORES) report/article.pdf

crate: $(INSTALLED) ## pack report/crate.zip: code, evidence and outputs as an RO-Crate
	$(BIN)/snakemake --cores $(CORES) report/crate.zip

environment: $(INSTALLED) ## install the locked versions into .venv; only this step needs a network

$(INSTALLED): envs/requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"$(PYTHON) is Python {v.major}.{v.minor}; 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r envs/requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@

# The tests share the cores; those of a file of the workflow's share a copy of the repository, so they are a group.
TESTS := $(BIN)/python -m pytest --numprocesses auto
LIBRARY := --dist worksteal tests/unit tests/hostile tests/reproduction src

test: $(INSTALLED) ## run the tests of every day: the library, the published numbers, the workflow on miniature data
	CLAI_HOSTILE_SCALE=0.1 $(TESTS) -m "not slow" $(LIBRARY)
	$(TESTS) -m "not slow" --dist loadfile tests/workflow

test-all: $(INSTALLED) ## run all tests, as continuous integration does: also all hostile inputs, kills, accidents, repetitions
	$(TESTS) $(LIBRARY)
	$(TESTS) --dist loadfile tests/workflow

hostile: $(INSTALLED) ## read hostile inputs with every parser, and write their numbers into docs/data.md
	CLAI_HOSTILE_PAGE=docs/data.md $(BIN)/python -m pytest --numprocesses auto tests/hostile

chaos: $(INSTALLED) ## let a hundred seeds draw accidents for the workflow, and write their numbers into docs/rerunning.md; hours
	CLAI_CHAOS_SEEDS=100 CLAI_CHAOS_PAGE=docs/rerunning.md $(BIN)/python -m pytest --numprocesses auto tests/workflow/test_chaos.py

lint: $(INSTALLED) ## check style, types and the workflow
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

benchmark: $(INSTALLED) ## measure time and memory of training and inference on this machine, which should do nothing else
	$(BIN)/snakemake --cores $(CORES) --forcerun measure_benchmark -- results/real/benchmark/evidence/benchmark.csv
	$(BIN)/python benchmarks/show.py results/real/benchmark/evidence/benchmark.csv

# Without $(INSTALLED): a machine with a GPU may have torch and no network. ARGS="--help" shows the options.
gpu-check: ## check exactness, repetition and speed on a GPU, in under ten minutes; run it again to go on
	$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) benchmarks/gpu_check.py $(if $(wildcard local.yaml),--configfile local.yaml) $(ARGS)

readme: $(INSTALLED) ## fill the figures of README.md and of three pages of docs from the published evidence
	$(BIN)/python workflow/scripts/update_readme.py

lock: ## resolve envs/requirements.lock from envs/requirements.in; needs uv
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--output-file envs/requirements.lock envs/requirements.in

clean: ## delete the environment and the miniature's results; downloads, full runs and tracked files stay
	rm -rf .venv results/mini results/verify logs/mini paper_figures/mini report .pytest_cache .mypy_cache .ruff_cache .hypothesis src/clai.egg-info

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
