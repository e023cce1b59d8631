# Learning Kernels by Alignment for Multiclass Bayes Classification, replicated from raw data to every table and figure.
from snakemake.utils import min_version

min_version("9.14.8")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/preprocess.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/baselines.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/controls.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/benchmark.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/verify.smk"


report: "workflow/report/workflow.rst"


localrules:
    all,
    mini,
    outputs,
    evidence,


onsuccess:
    remove_finished_checkpoints(Path("results"))


rule all:
    default_target: True
    input:
        files_of_outputs("paper_figures"),
        files_of_outputs("paper_figures/mini") if config["evidence"] == "published" else [],
    message:
        "Render every table and figure, and with published evidence run the miniature pipeline too."


rule mini:
    input:
        files_of_outputs("paper_figures/mini"),
    message:
        "Run the whole pipeline on miniature synthetic data."


rule outputs:
    input:
        files_of_outputs("paper_figures"),
    message:
        "Render every table and figure of the evidence that config.yaml names."


rule evidence:
    input:
        all_evidence(f"results/{config['evidence']}", settings("real")),
        published_models("results/real", settings("real")) if config["evidence"] == "real" else [],
    message:
        "Compute the evidence behind tables and figures and the models to publish, and render nothing."
