# Time and memory of training and inference, measured alone on the machine: needs no data, leaves results/{preset}/compute/evidence/.


rule measure_compute:
    input:
        library=library("benchmark", "provenance", "jobs"),
    output:
        measured=f"results/{{preset}}/{BENCHMARK}/evidence/compute.csv",
        records=f"results/{{preset}}/{BENCHMARK}/evidence/runs.json",
        description=f"results/{{preset}}/{BENCHMARK}/evidence/dataset.json",
    log:
        f"logs/{{preset}}/{BENCHMARK}/measure_compute.log",
    conda:
        "../../envs/environment.yaml"
    threads: all_cores
    resources:
        gpu=1,
    params:
        settings=benchmark_settings,
        run=f"{BENCHMARK}/benchmark/seed0",
    message:
        "Measure time and memory of training and inference ({wildcards.preset}); the machine should do nothing else."
    script:
        "../scripts/measure_compute.py"
