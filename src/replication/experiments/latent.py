"""The latent space: embeddings in two dimensions (figures 1, 2), over the hours of a stay (figure 4, claim 11), their tails."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from clailearn.kernels import Kernel
from replication.datasets.files import read_parquet
from replication.datasets.prepared import Prepared
from replication.datasets.recordings import segments
from replication.models.base import create
from replication.models.embedding import Embedded, load_embedded
from replication.models.items import recording_rows
from replication.models.row_classifiers import fit_one
from replication.models.run import Run
from replication.runs.run import COLUMNS, RunId

Floats = NDArray[np.floating[Any]]
TSNE_SAMPLES, STAGE_SAMPLES = 5000, 1500
"""Test samples in figures 2 and 1."""
COMPONENTS = 50
"""Principal components that t-SNE sees."""
PERPLEXITY = 30
"""The effective number of neighbours of a sample in t-SNE."""
ITERATIONS = 1000
"""Steps of t-SNE's gradient descent."""
AROUND_ONSET, FEWEST_STAYS = (-24, 9), 20
"""First and last hour around the onset of an event that figure 4 shows, and how many stays an hour has at least."""
HOURS_BEFORE, EVENT_HOURS = 12, 4
"""Hours before the event, and of it, that the stay of figure 4 has at least."""
KEPT_VARIANCE = 0.99
"""Share of the variance of embeddings in the principal components whose tails are measured."""
REGULARISATION_OF_TAILS = 1e-3
"""Of the Student-t distributions that are fitted to them, always alike: trials choose that of the mixtures of sepsis."""


@torch.no_grad()
def _drawn(
    run: Run, kernel: Kernel, test: Embedded, most: int
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Draw at most `most` test samples; return their positions, embeddings (K, n, D) in the kernel's coordinates and labels."""
    positions = np.sort(np.random.default_rng(run.id.seed).permutation(len(test.y))[:most])
    coordinates = kernel.coordinates(test.z[:, torch.from_numpy(positions)]).double().numpy()
    return positions, coordinates, test.y.numpy()[positions]


def tsne(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test embeddings, side by side, by PCA and t-SNE (van der Maaten & Hinton 2008): columns model, x, y, label."""
    _, parts, label = _drawn(run, kernel, test, TSNE_SAMPLES)
    coordinates = np.concatenate(parts, axis=1)
    reduced = PCA(min(COMPONENTS, *coordinates.shape), svd_solver="full").fit_transform(coordinates)
    projected = TSNE(
        perplexity=min(PERPLEXITY, (len(reduced) - 1) / 3),
        max_iter=ITERATIONS,
        init="pca",
        random_state=run.id.seed,
        n_jobs=1,
    ).fit_transform(reduced)
    return pd.DataFrame({"model": run.model, "x": projected[:, 0], "y": projected[:, 1], "label": label})


def stages(run: Run, kernel: Kernel, test: Embedded) -> pd.DataFrame:
    """Project test samples to their first two principal components, before and after the encoder.

    Stage 0 shows the samples as prepared, before normalisation, stage k the embeddings phi(., k) of condition k, from 1. Columns
    stage, x, y, label.
    """
    drawn, after, label = _drawn(run, kernel, test, STAGE_SAMPLES)
    before = run.data["x_test"].reshape(len(test.y), -1)[drawn].astype(np.float64)
    found = [PCA(min(2, *part.shape), svd_solver="full").fit_transform(part) for part in (before, *after)]
    projected = [np.pad(part, ((0, 0), (0, 2 - part.shape[1]))) for part in found]  # of a single feature on a line
    frames = [pd.DataFrame({"stage": k, "x": p[:, 0], "y": p[:, 1], "label": label}) for k, p in enumerate(projected)]
    return pd.concat(frames, ignore_index=True)


def write_projections(job: Any) -> None:
    """Write t-SNE and stages of the embeddings that a job of the workflow (`snakemake`) is given; empty tables without any."""
    frames = {name: pd.DataFrame(columns=COLUMNS[f"{name}.csv.gz"]) for name in ("tsne", "stages")}
    for path in map(Path, job.input.embedded):
        run = Run.for_job(job, str(path))
        model = create(run.model).load(run, path.with_name("model.safetensors"))
        test = load_embedded(path)["test"]
        frames = {"tsne": tsne(run, model.kernel, test), "stages": stages(run, model.kernel, test)}
    for name, digits in (("tsne", 3), ("stages", 4)):
        # gzip writes the time into its header unless told not to
        compression: Any = {"method": "gzip", "mtime": 0}
        frames[name].to_csv(job.output[name], index=False, float_format=f"%.{digits}f", compression=compression)


def trace_signals(
    data: Prepared, embedded: Sequence[str], latent: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Trace one stay of fold 0 in every model that has the first seed, and measure how rough the latent processes are.

    embedded, latent: paths of runs' embeddings and latent processes. Returns the columns of `signals.csv`, and the columns
    quantity and value of each process by path.
    """
    paths = [*embedded, *latent]
    first_seed = min((RunId.parse(path).seed for path in paths), default=None)
    shown, processes = [], {}
    for path in paths:
        run = RunId.parse(path)
        rows = np.asarray(data["folds_all"]) == run.fold
        recording, hours, y = (np.asarray(data[f"{name}_all"])[rows] for name in ("groups", "hours", "y"))
        if path in latent:
            process = np.load(path, allow_pickle=False)
            signals, sd = process["mean"][:, None], process["sd"][:, None]
            value = mean_roughness(signals, segments(recording)[0])
            processes[path] = pd.DataFrame({"quantity": ["roughness"], "value": [value]})
        else:
            signals = load_embedded(path)["test"].z[0].double().numpy()
            sd = np.full(signals.shape, np.nan)
        if run.fold == 0 and run.seed == first_seed:
            stay = recording == choose_stay(recording, y)
            length, count = signals[stay].shape
            columns = {
                "model": run.cell,
                "hour": np.repeat(hours[stay], count),
                "signal": np.tile(np.arange(count), length),
                "value": signals[stay].ravel(),
                "sd": sd[stay].ravel(),
                "event": np.repeat(y[stay], count),
            }
            shown.append(pd.DataFrame(columns))
    return pd.concat(shown) if shown else pd.DataFrame(columns=COLUMNS["signals.csv"]), processes


def likenesses(predictions: Sequence[str], latent: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return how far the score of a run goes with the mean of the Gaussian process of its fold, in the columns of `latent.csv`.

    It is the correlation over the test hours of the fold. predictions, latent: paths of runs, `gp` among the latter.
    """
    means = {
        run.fold: np.load(path, allow_pickle=False)["mean"]
        for run, path in sorted(((RunId.parse(path), path) for path in latent), reverse=True)
        if run.cell == "gp"
    }
    found = {}
    for path in predictions:
        if (mean := means.get(RunId.parse(path).fold)) is not None:
            frame = read_parquet(Path(path))
            score = frame["log_odds"].to_numpy(np.float64)
            score = np.where(frame["vote"], np.tanh(score / 2), score)
            found[path] = pd.DataFrame({"quantity": ["likeness"], "value": [float(np.corrcoef(score, mean)[0, 1])]})
    return found


def areas_around_onset(
    z: Floats, recording: NDArray[np.int64], hours: NDArray[np.int64], y: NDArray[np.int64]
) -> pd.DataFrame:
    """Return the area between signals (rows, L) in the hours around the onset of an event, of stays with hours before one.

    The first hours of a stay differ from later ones; where the event begins with the stay, they would pass for its effect.
    Columns: since_onset (hours; 0 is the first of the event) and area, in units of the mean area of all hours, so that models
    compare.
    """
    width = np.ptp(z, axis=1)
    table = pd.DataFrame({"stay": recording, "since_onset": hours, "area": width / width.mean()})
    onset = table[y == 1].groupby("stay")["since_onset"].min()
    table["since_onset"] -= table["stay"].map(onset)
    before = table.groupby("stay")["since_onset"].transform("min") < 0
    return table.loc[before & table["since_onset"].between(*AROUND_ONSET), ["since_onset", "area"]].astype(
        {"since_onset": int}
    )


def mean_areas(areas: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over stays of areas by model and hour since the onset, in the columns of `areas.csv`.

    Of each model the runs of the first seed count, in which each stay is once. The limits are of the 95 % t-interval over stays;
    hours of fewer stays than `FEWEST_STAYS` are left out.
    """
    if areas.empty:  # of models without signals
        return pd.DataFrame(columns=COLUMNS["areas.csv"])
    areas = areas[areas["seed"] == areas.groupby("model")["seed"].transform("min")]
    means = areas.groupby(["model", "since_onset"])["area"].agg(area="mean", error="sem", stays="size").reset_index()
    means = means[means["stays"] >= FEWEST_STAYS]
    low, high = stats.t.interval(0.95, means["stays"] - 1, means["area"], means["error"])
    return means.assign(low=low, high=high)[COLUMNS["areas.csv"]]


def roughness(signals: Floats) -> Floats:
    """Return the mean absolute second difference of each signal (hours, L) over its standard deviation, (L,), or NaN."""
    deviation = signals.std(axis=0)
    if len(signals) < 3:
        return np.full(signals.shape[1], np.nan)
    bend = np.abs(np.diff(signals, 2, axis=0)).mean(axis=0)
    return np.divide(bend, deviation, out=np.full(len(bend), np.nan), where=deviation > 0)


def choose_stay(recording: NDArray[np.int64], y: NDArray[np.int64]) -> int:
    """Choose the stay that figure 4 shows, by rule and not by eye.

    A recording qualifies with at least HOURS_BEFORE hours before its first positive hour and EVENT_HOURS positive hours.
    The choice is the recording in the middle of these, in order of length and then of id. If none qualifies, it is the recording
    with most hours before its event. recording, y: recording and label of each hour, (rows,).
    """
    table = pd.DataFrame({"recording": recording, "y": y})
    stays = table.groupby("recording", sort=True)["y"].agg(hours="size", event="sum", before=lambda s: s.argmax())
    stays = stays[stays["event"] > 0]
    enough = stays[(stays["before"] >= HOURS_BEFORE) & (stays["event"] >= EVENT_HOURS)]
    if enough.empty:
        return int(stays["before"].idxmax())
    ordered = enough.sort_values("hours", kind="stable")
    return int(ordered.index[(len(ordered) - 1) // 2])


def mean_roughness(signals: Floats, starts: NDArray[np.int64]) -> float:
    """Return the mean roughness of all stays, whose first rows are `starts`, and signals (rows, L)."""
    rough = np.concatenate([roughness(stay) for stay in np.split(signals.astype(np.float64), starts[1:])])
    return float(np.nanmean(rough)) if np.isfinite(rough).any() else float("nan")


@torch.no_grad()
def signals_as_seen(run: Run, kernel: Kernel, test: Embedded) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `seen_statistics` and `areas_around_onset` of a run's test samples, of one condition, as the kernel sees them.

    The raw embedding of CLaI-C has a norm that the cosine kernel ignores, and that of CLaI-M directions that M may ignore.
    """
    rows = recording_rows(run.data, run.settings, run.id)[2]
    recording, hours, y = (np.asarray(run.data[f"{name}_all"])[rows] for name in ("groups", "hours", "y"))
    z = kernel.coordinates(test.z[0]).double().numpy()
    return seen_statistics(z, recording, y), areas_around_onset(z, recording, hours, y)


def seen_statistics(z: Floats, recording: NDArray[np.int64], y: NDArray[np.int64]) -> pd.DataFrame:
    """Return the quantities of claim 11, with columns quantity and value, for signals (rows, L) as the kernel sees them.

    area_effect_seen: mean over stays with hours both in and out of an event of the difference of the area (event minus no event)
    over its standard deviation (Cohen's d of paired differences). area_effect_control_seen: the same over stays without an event,
    with their last hours in place of the event, as many as the median event has, because events are at the ends of stays.
    roughness_seen: mean over all stays and signals.
    """
    starts, lengths = segments(recording)
    events = np.add.reduceat(y, starts)
    usual = int(np.median(events[events > 0])) if events.any() else 0
    left = np.repeat(starts + lengths, lengths) - np.arange(len(y))  # hours to the end of the stay, this one included
    eventless = np.repeat(events == 0, lengths)
    width = np.ptp(z, axis=1)
    found = {
        "area_effect_seen": _effect(width, recording, y),
        "area_effect_control_seen": _effect(width[eventless], recording[eventless], left[eventless] <= usual),
        "roughness_seen": mean_roughness(z, starts),
    }
    return pd.DataFrame(found.items(), columns=["quantity", "value"])


def _effect(values: Floats, recording: NDArray[np.int64], inside: NDArray[Any]) -> float:
    """Return Cohen's d of the mean of the values inside minus that outside, over the recordings that have both."""
    frame = pd.DataFrame({"recording": recording, "inside": inside.astype(np.int64), "value": values})
    means = frame.pivot_table(index="recording", columns="inside", values="value").reindex(columns=[0, 1]).dropna()
    difference = means[1] - means[0]
    return float(difference.mean() / difference.std(ddof=1)) if len(difference) > 1 else float("nan")


def degrees_of_freedom(embedded: Embedded, classes: int, most: int, seed: int) -> float:
    """Return the degrees of freedom of embeddings of one class, the geometric mean over classes: few are long tails (claim C).

    To each class's embeddings under its own condition, of at most `most` samples, one Student-t distribution is fitted by
    likelihood, in their leading principal components. The least is 1; a thousand normal samples have some tens or more.
    """
    generator, found = np.random.default_rng(seed), []
    for k in range(classes):
        rows = generator.permutation(np.flatnonzero(embedded.y.numpy() == k))[:most]
        condition = min(k, len(embedded.z) - 1)  # or the only one
        z = embedded.z[condition, torch.from_numpy(rows)].double().numpy()
        whitened = PCA(KEPT_VARIANCE, whiten=True, svd_solver="full").fit_transform(z)
        fitted = fit_one(
            whitened, k, reg_covar=REGULARISATION_OF_TAILS, n_components=1, df=10.0, fixed_df=False, random_state=seed
        )
        found.append(float(fitted.df_[0]))
    return float(stats.gmean(found))
