"""Evaluate a trained model on test samples, and measure what the controls of claims ask of its run."""

from typing import TYPE_CHECKING

import pandas as pd

from replication.experiments.embeddings import embed_parts, open_view
from replication.experiments.evaluation import (
    class_similarity,
    evaluate_clai,
    evaluate_cross_entropy,
    evaluate_supervised_contrastive,
)
from replication.experiments.rule_agreement import AGREEMENT_COLUMNS, measure_agreement
from replication.experiments.seen_signals import seen_statistics
from replication.models.embedding import embed_splits, save_embedded
from replication.models.run import Run
from replication.models.training import load_clai, load_classifier, load_contrastive
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.resources import disk_mb

if TYPE_CHECKING:
    from snakemake.script import snakemake

start_job(snakemake.log[0], lower="encoder.width")
output, path, parts = snakemake.output, snakemake.input.model, snakemake.params.parts
run = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(output.metrics))
recorder = run.recorder()
embedded = {}
if run.model == "cross-entropy":
    evaluation = evaluate_cross_entropy(run, load_classifier(run, path))
elif run.model == "supervised-contrastive":
    evaluation = evaluate_supervised_contrastive(run, load_contrastive(run, path))
else:
    encoder, kernel = load_clai(run, path)
    embedded = embed_splits(run, encoder)
    evaluation = evaluate_clai(run, kernel, embedded)
save_embedded(output.embedded, embedded)
evaluation.save(output.metrics, output.reliability, output.predictions)
kept = [output.metrics, output.reliability, output.predictions, *([output.embedded] if embedded else [])]
recorder.write(output.record, disk_mb=disk_mb(kept), command=f"snakemake {output.metrics}")

similarity = pd.DataFrame(columns=["class_a", "class_b", "similarity"])
agreement, latent = pd.DataFrame(columns=AGREEMENT_COLUMNS), pd.DataFrame(columns=["quantity", "value"])
if embedded:
    similarity = class_similarity(run, kernel, embedded["test"])
if "rules" in parts:
    agreement = measure_agreement(run, kernel, embedded)
if "classes" in parts or "signals" in parts:
    view = open_view(run, run.model, path)
    (test,) = embed_parts(run, view, {"test": None}).values()
    if "classes" in parts:
        similarity = class_similarity(run, view.kernel.cpu(), test)
    if "signals" in parts:
        latent = seen_statistics(run, view.kernel.cpu(), test)
similarity.to_csv(output.similarity, index=False)
agreement.to_csv(output.agreement, index=False)
latent.to_csv(output.latent, index=False)
