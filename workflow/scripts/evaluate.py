"""Evaluate a trained model on test samples, and measure what the controls of claims ask of its run."""

import numpy as np
import pandas as pd

from replication.experiments.embeddings import open_view
from replication.experiments.evaluation import class_similarity, evaluate, evaluate_clai, measure_agreement
from replication.experiments.latent_signals import areas_around_onset, as_seen, seen_statistics
from replication.models.base import create
from replication.models.clai import CLaI
from replication.models.embedding import embed, embed_splits, save_embedded
from replication.models.run import Run
from replication.runs.identity import RunId
from replication.runs.jobs import start_job
from replication.runs.models import MODELS

start_job(snakemake.log[0])
output, path, parts = snakemake.output, snakemake.input.model, snakemake.params.parts
run = Run.open(snakemake.input.prepared, snakemake.params.settings, RunId.parse(output.metrics))
recorder = run.recorder()
model = create(run.model).load(run, path)
embedded = embed_splits(run, model.network) if isinstance(model, CLaI) else {}
evaluation = evaluate_clai(run, model.kernel, embedded) if embedded else evaluate(run, model, run.splits)
save_embedded(output.embedded, embedded)
evaluation.save(output.metrics, output.reliability, output.predictions)
mean, sd = model.latent(run, run.splits.test) if MODELS[run.model].latent else ((), ())
np.savez(output.process, mean=mean, sd=sd)
recorder.write(output.record, command=f"snakemake {output.metrics}")

similarity = pd.DataFrame(columns=["class_a", "class_b", "similarity"])
agreement, latent = pd.DataFrame(columns=["share", "quantity", "value"]), pd.DataFrame(columns=["quantity", "value"])
areas = pd.DataFrame(columns=["since_onset", "area"])
if embedded:
    similarity = class_similarity(run, model.kernel, embedded["test"])
if "rules" in parts:
    agreement = measure_agreement(run, model.kernel, embedded)
if "classes" in parts or "signals" in parts:
    view = open_view(run, run.model, path)
    test = embed(run, view.module, run.splits.test)
    if "classes" in parts:
        similarity = class_similarity(run, view.kernel.cpu(), test)
    if "signals" in parts:
        z, recording, hours, y = as_seen(run, view.kernel.cpu(), test)
        latent, areas = seen_statistics(z, recording, y), areas_around_onset(z, recording, hours, y)
similarity.to_csv(output.similarity, index=False)
agreement.to_csv(output.agreement, index=False)
latent.to_csv(output.latent, index=False)
areas.to_csv(output.areas, index=False, float_format="%.5g")
