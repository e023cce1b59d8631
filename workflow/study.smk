# The pipeline, one file a stage. The Snakefile uses it twice: for real data and, as the module `mini`, for the miniature.
include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/evidence.smk"
include: "rules/studies.smk"
include: "rules/outputs.smk"
include: "rules/verify.smk"
include: "rules/own.smk"
