# Numerical checks of the mathematics: needs no data, leaves results/{preset}/theory/evidence/theory.csv.


rule check_theory:
    input:
        library=library("theory"),
    output:
        "results/{preset}/theory/evidence/theory.csv",
    log:
        "logs/{preset}/theory/check_theory.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(wildcards.preset)["theory"],
    message:
        "Check decision rules, the alignment bound and the loss floors numerically."
    script:
        "../scripts/check_theory.py"
