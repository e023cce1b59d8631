# The pipeline, one file a stage. The Snakefile uses it three times: for real data and, as the modules
# `mini` and `afternoon`, for the miniature and for a smaller evidence.
include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/evidence.smk"
include: "rules/studies.smk"
include: "rules/outputs.smk"
include: "rules/verify.smk"
include: "rules/own.smk"
