#!/usr/bin/env bash
# Run in the activated environment, from the repository root: by hand, or by `snakemake --software-deployment-method conda`.
set -euo pipefail
pip install --require-hashes -r envs/requirements.lock
pip install --no-deps --no-build-isolation -e .
