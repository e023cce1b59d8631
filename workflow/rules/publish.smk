# Promotion of a full run to tracked evidence. Requires results/real/*/evidence/; leaves copies in results/published/, which no
# rule produces.


rule publish:
    input:
        evidence=lambda wildcards: all_evidence("results/real", settings("real")),
        models=lambda wildcards: published_models("results/real", settings("real")),
        library=[*RENDERING, *EVALUATION],
    output:
        "results/real/published.json",
    log:
        "logs/real/publish.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        target="results/published",
    message:
        "Check the evidence of the full run and copy it to results/published/."
    script:
        "../scripts/publish.py"
