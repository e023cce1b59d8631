# Learning Kernels by Alignment for Multiclass Bayes Classification, replicated from raw data to every table and figure.
from snakemake.utils import min_version

min_version("9.14.8")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/pages.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/preprocess.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/baselines.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/benchmark.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/publish.smk"


report: "workflow/report/workflow.rst"


localrules:
    all,
    mini,
    outputs,
    pages,
    evidence,


onsuccess:
    remove_finished_checkpoints(Path("results"))


rule all:
    default_target: True
    input:
        files_of_outputs("paper_figures"),
        files_of_outputs("paper_figures/mini") if config["evidence"] == "published" else [],
    message:
        "Every table and figure of config.yaml's evidence, and with published evidence the miniature pipeline."


rule mini:
    input:
        files_of_outputs("paper_figures/mini"),
    message:
        "The whole pipeline on miniature synthetic data."


rule outputs:
    input:
        files_of_outputs("paper_figures"),
    message:
        "Every table and figure of config.yaml's evidence."


rule evidence:
    input:
        all_evidence(f"results/{config['evidence']}", settings("real")),
    message:
        "The evidence that tables and figures are made from, and nothing else."


rule pages:
    input:
        pages_in("report"),
        pages_in("report/mini") if config["evidence"] == "published" else [],
    message:
        "The pages of the report, which `make report` puts into one file."
