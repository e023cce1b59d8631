"""Methods that CLaI is compared with: on the same embeddings, or on the same inputs (`hourly_classifiers`, `deep_kernel_gp`).

A baseline is one module with one function `fit_<method>(z, y, *, <settings>, seed)`: embeddings (N, L), class
indices (N,) in 0 .. C - 1 and its settings as keyword arguments without defaults. What it returns has

    scores(z) -> (N, C)           larger means more likely; used for calibration and thresholds
    predict_proba(z) -> (N, C)    rows sum to 1

To add one: write the module here, give its settings a block under `baselines` in config.yaml and in the schema, and a
rule in workflow/rules/baselines.smk whose script fits it and writes its metrics through `clai.metrics.classification`. The
cross-entropy baseline shares encoder and optimisation with CLaI and lives in `clai.experiments.training`.
"""
