# Numerical checks of the mathematics: needs no data, leaves results/{preset}/theory/evidence/theory.csv.


rule check_theory:
    message:
        "Check decision rules, the alignment bound and the loss floors numerically."
    input:
        library=library("theory"),
    output:
        "results/{preset}/theory/evidence/theory.csv",
    params:
        settings=lambda wildcards: settings(wildcards.preset)["theory"],
    log:
        "logs/{preset}/theory/check_theory.log",
    threads: 1
    script:
        "../scripts/check_theory.py"
