# Learning Kernels by Alignment for Multiclass Bayes Classification, replicated from raw data to every table and figure.
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.19")
# The library of this repository, whether installed or not; jobs are processes of their own
sys.path.insert(0, f"{workflow.current_basedir}/src")
os.environ |= {"PYTHONPATH": os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))}

from replication.runs.registry import check_place, read_yaml
from replication.runs.settings import MINIATURE, load_settings, merge

check_place(str(workflow.current_basedir))
os.environ |= {"MPLBACKEND": "agg", "MATPLOTLIBRC": os.devnull}  # jobs draw alike, and also where a user's are damaged
for file in workflow.configfiles:
    read_yaml(file)  # refuses a key that stands twice, and settings that never end
own_settings = merge(config)  # those of --configfile and --config
config.update(load_settings(Path(), own_settings))  # the defaults below them, checked
mini_config = load_settings(Path(), own_settings, "mini")
afternoon_config = load_settings(Path(), own_settings, "afternoon")


report: "workflow/report/workflow.rst"


# One pipeline, used three times: for the evidence that config.yaml names, for the miniature, and for the afternoon.
# The settings of each have its folders, the `pathvars` (replication.runs.settings.folders).
pathvars:
    **config["pathvars"],


include: "workflow/study.smk"


module mini:
    snakefile:
        "workflow/study.smk"
    config:
        mini_config


use rule * from mini as mini_*


module afternoon:
    snakefile:
        "workflow/study.smk"
    config:
        afternoon_config


use rule * from afternoon as afternoon_*


onstart:
    if "afternoon" in workflow.dag_settings.targets:
        from replication.report.plan import plan_text, tell_hourly  # imports pandas

        print(plan_text(Path(), afternoon_config), file=sys.stderr)
        tell_hourly(Path(), afternoon_config)
    elif config["evidence"] == "published" and not {"own", "mini"} & set(workflow.dag_settings.targets):
        print(
            "Outputs show the published evidence. To compute everything on real data, in days of a core:",
            "snakemake --cores 8 all --config evidence=real",
            file=sys.stderr,
        )
    if config["evidence"] == "real" and (names := outputs.left_out(config)):
        print(f"Left out, because datasets.<name>.path is not set: {', '.join(names)}", file=sys.stderr)


onerror:
    restore_outputs("paper_figures")
    print(f"\n{failures(log)}", file=sys.stderr)


onsuccess:
    remove_finished_checkpoints(Path("results"))
    if "own" in workflow.dag_settings.targets:
        from replication.report.own import result  # imports pandas

        print("", *(result(config, name) for name in outputs.own_datasets(config)), sep="\n", file=sys.stderr)
    if "afternoon" in workflow.dag_settings.targets:
        print(Path("paper_figures/afternoon.md").read_text(encoding="utf-8"), file=sys.stderr)
        print(
            "make verify adds: the published numbers, computed again from the published predictions.",
            file=sys.stderr,
        )


rule mini:
    input:
        rules.mini_outputs.input,
        expand("results/mini/{dataset}/prepared/dataset.json", dataset=read_yaml(MINIATURE)["datasets"]),
        "paper_figures/mini.md",
    localrule: True
    message:
        "Run the whole pipeline on miniature synthetic data."


rule afternoon:
    input:
        "paper_figures/afternoon.md",
    localrule: True
    message:
        "Judge the paper's claims by a smaller evidence, computed from raw data, and compare with the published verdicts."


rule all:
    default_target: True
    input:
        rules.outputs.input,
        rules.mini.input if config["evidence"] == "published" else [],
    localrule: True
    message:
        "Render every table and figure, and with published evidence run the miniature pipeline too."
