# Time and memory of training and inference, measured alone on the machine. Needs no data; leaves
# results/{evidence}/benchmark/evidence/.


rule measure_benchmark:
    input:
        library=[*TRAINING, *library("replication/benchmark")],
    output:
        measured=f"results/{{evidence}}/{BENCHMARK}/evidence/benchmark.csv",
        records=f"results/{{evidence}}/{BENCHMARK}/evidence/runs.jsonl",
        shared=f"results/{{evidence}}/{BENCHMARK}/evidence/runs_shared.json",
        description=f"results/{{evidence}}/{BENCHMARK}/evidence/dataset.json",
    log:
        f"logs/{{evidence}}/{BENCHMARK}/measure_benchmark.log",
    conda:
        "../../envs/environment.yaml"
    threads: cores_of_benchmark
    resources:
        gpu=1,
    params:
        settings=lambda wildcards: run_settings.benchmark_settings(settings(wildcards.evidence)),
    message:
        "Measure time and memory of training and inference ({wildcards.evidence}) while the machine does nothing else."
    script:
        "../scripts/measure_benchmark.py"
