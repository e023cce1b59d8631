# Numerical checks of the mathematics. Needs no data; leaves results/{evidence}/theory/evidence/.


rule check_theory:
    input:
        library=EVALUATION,
    output:
        found=f"results/{{evidence}}/{THEORY}/evidence/theory.csv",
        records=f"results/{{evidence}}/{THEORY}/evidence/runs.jsonl",
        shared=f"results/{{evidence}}/{THEORY}/evidence/runs_shared.json",
    log:
        f"logs/{{evidence}}/{THEORY}/check_theory.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    params:
        settings=lambda wildcards: run_settings.select(settings(wildcards.evidence), ["miniature"]),
    message:
        "Check decision rules, the alignment bound and the loss floors numerically."
    script:
        "../scripts/check_theory.py"
