# Models of rows of features, of single hours of recordings by the encoder's inputs, or of embeddings of CLaI-C.
# Requires <results>/{dataset}/prepared/ and, for models of embeddings, these; leaves metrics as `evaluate` does.


rule fit_baseline:
    input:
        prepared="<results>/{dataset}/prepared/dataset.json",
        embedded=embeddings_below,
        library=EVALUATION,
    output:
        metrics="<results>/{dataset}/{model}/{run}/metrics.csv",
        reliability="<results>/{dataset}/{model}/{run}/reliability.csv",
        predictions="<results>/{dataset}/{model}/{run}/predictions.npz",
        process="<results>/{dataset}/{model}/{run}/latent.npz",
        record="<results>/{dataset}/{model}/{run}/run.json",
    log:
        "<logs>/{dataset}/{model}/{run}/fit_baseline.log",
    wildcard_constraints:
        model="|".join([*fitted_on("rows"), *fitted_on("embeddings")]),
    conda:
        "../../envs/environment.yaml"
    threads: threads_of
    params:
        settings=read_by_model(),
    message:
        "Fit {wildcards.model} on {wildcards.dataset}, {wildcards.run}."
    script:
        "../scripts/fit_baseline.py"
