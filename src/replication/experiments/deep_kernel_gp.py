"""The deep-kernel Gaussian process on a run: train and evaluate."""

import time

import pandas as pd

from clai.checkpoints import Checkpoint
from clai.trainer import Epoch
from replication.experiments.evaluation import Evaluation, evaluate_rows
from replication.experiments.studies import Cell
from replication.models.deep_kernel_gp import DeepKernelGP, Latent, prevalence_shift, train_deep_kernel_gp
from replication.models.run import Run


def train(run: Run, checkpoint: Checkpoint) -> tuple[DeepKernelGP, list[Epoch]]:
    """Train encoder and process as config.yaml's `training` says. Returns the model on the device and its history."""
    return train_deep_kernel_gp(
        run.splits,
        run.training,
        encoder=run.settings["encoder"],
        embedding_size=run.settings["embedding_size"],
        inducing_points=run.settings["baselines"]["gp"]["inducing_points"],
        device=run.device,
        checkpoint=checkpoint,
    )


def evaluate(run: Run, model: DeepKernelGP) -> tuple[Evaluation, Latent]:
    """Measure the probabilities on the test samples. Returns also the process at these samples."""
    test, val = model.latent(run.splits.test), model.latent(run.splits.val)
    shift = prevalence_shift(run.splits.train, run.training)
    return evaluate_rows(run, test.log_odds(shift), val.log_odds(shift)), test


def fit_cell(run: Run, checkpoint: Checkpoint) -> Cell:
    """Train and evaluate the process of a cell of a study; `training_seconds` as of `replication.experiments.network_cell`."""
    started = time.perf_counter()
    model, history = train(run, checkpoint)
    figures = {"training_seconds": round(checkpoint.earlier + time.perf_counter() - started, 2)}
    return Cell(evaluate(run, model)[0].metrics, pd.DataFrame(history), figures)
