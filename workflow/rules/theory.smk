# Numerical checks of the mathematics: needs no data, leaves results/{preset}/theory/evidence/.


rule check_theory:
    input:
        library=library("theory", "provenance", "jobs"),
    output:
        found=f"results/{{preset}}/{THEORY}/evidence/theory.csv",
        records=f"results/{{preset}}/{THEORY}/evidence/runs.json",
    log:
        f"logs/{{preset}}/{THEORY}/check_theory.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=lambda wildcards: settings(wildcards.preset)["theory"],
    message:
        "Check decision rules, the alignment bound and the loss floors numerically."
    script:
        "../scripts/check_theory.py"
