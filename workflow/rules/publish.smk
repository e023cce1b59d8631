# Promotion of a full run to tracked evidence. Requires results/paper/*/evidence/; leaves copies in results/published/, which no rule produces.


rule publish:
    message:
        "Check the evidence of the full run and copy it to results/published/."
    input:
        evidence=lambda wildcards: [f for name in at_hand("results/paper") for f in evidence_files("results/paper", name)],
        theory="results/paper/theory/evidence/theory.csv",
        library=library("publication", "logs"),
    output:
        "results/paper/published.json",
    params:
        target="results/published",
    log:
        "logs/paper/publish.log",
    threads: 1
    localrule: True
    script:
        "../scripts/publish.py"
