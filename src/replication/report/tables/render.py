"""All tables by name: evidence -> tidy frame -> layouts -> LaTeX and Markdown.

Tables 1 to 3 are functions of `tables.paper`. outputs.yaml declares the others: which frame, one of `FRAMES`, and which of its
rows and columns stand in which block.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from replication.metrics.intervals import both_ways, holm, minus
from replication.report.evidence import (
    Evidence,
    identified,
    in_units,
    owners,
    printed_reading,
    run_cell,
    runs_behind,
    summary,
)
from replication.report.labels import METRICS
from replication.report.tables import paper
from replication.report.tables.layout import DASH, Block, Layout, pivot, reasons, to_latex, to_markdown
from replication.report.texts import REPORTED, caption, printed
from replication.runs.registry import BENCHMARK, CLAI, PREFIX
from replication.runs.settings import chosen_trial

Blocks = Sequence[Block]
Frame = Callable[[Evidence, Blocks], pd.DataFrame]

PAPER: dict[str, tuple[Callable[[Evidence], pd.DataFrame], Callable[[pd.DataFrame, Evidence], list[Layout]], str]] = {
    "table1": (paper.table1_frame, paper.results_layouts, "tab:results"),
    "table2": (paper.table2_frame, paper.table2_layouts, "tab:class_mappings"),
    "table3": (paper.table3_frame, paper.results_layouts, "tab:detection_UQ_experiments"),
}
"""The tables laid out by hand, with the label that the paper gives them."""

ENDS = ["alignment", "centred_alignment", "validation_accuracy"]
"""Columns of the history of training whose last value is a metric of its end."""
STATED = {
    "images": ("Samples", "images"),
    "recordings": ("Recordings", "recordings"),
    "classes": ("Classes", "classes"),
    "share for training": ("Split", "% for training"),
    "training images": ("Split train", "training images"),
    "test images": ("Split test", "test images"),
}
"""By figure that the paper states, the quantity that it stands beside, and its words."""
UNITS = {"images": "images", "signals": "epochs", "features": "rows", "recordings": "hours"}
"""What samples of a kind of data are."""


@dataclass(frozen=True)
class Table:
    """A rendered table: its tidy frame, layouts, LaTeX, Markdown, full caption, and the records of the runs behind it."""

    frame: pd.DataFrame
    layouts: Sequence[Layout]
    tex: str
    md: str
    caption: str
    runs: list[dict[str, Any]]


def render(name: str, declared: Mapping[str, Any], evidence: Evidence, fixed_caption: str) -> Table:
    """Return a table, with its caption and the records of the runs that its numbers rest on.

    declared: its entry in outputs.yaml.
    """
    file, label = next(iter(declared["files"]), ""), f"tab:{name.rpartition('/')[2]}"
    if name.startswith("own/"):
        label = "_".join([label, *evidence.expected])
    if name in PAPER:
        make_frame, lay_out, label = PAPER[name]
        frame = make_frame(evidence)
        layouts = lay_out(frame, evidence)
    else:
        blocks = [Block(**block) for block in declared["blocks"]]
        frame = FRAMES[declared["frame"]](evidence, blocks)
        missing = reasons(evidence, file) if file else {}
        layouts, left = [], dict(missing)
        for block in blocks:
            # A reason stands in the first block that may show the name.
            here = {name: left.pop(name) for name in list(left) if block.admits(name, evidence.dataset_of(name))}
            layouts.append(pivot(frame, block, evidence, here))
        there = set(owners(frame)["name"])
        rows = [(name, None, reason) for name, reason in missing.items() if name not in there]
        lacking = identified(evidence, pd.DataFrame(rows, columns=["name", "cell", "data"]))
        frame = pd.concat([frame, lacking], ignore_index=True)
    runs = runs_behind(evidence, frame) if "model" in frame else []
    frame = frame if name in PAPER else frame.dropna(axis="columns", how="all")
    text = caption(fixed_caption, evidence, runs)
    shown = list(filter(_says_something, layouts))
    return Table(frame, shown, to_latex(shown, text, label, evidence.miniature), to_markdown(shown, text), text, runs)


def _says_something(layout: Layout) -> bool:
    """Return whether a layout has a reason, or a row with a value of the first metric. Blocks may share the others."""
    first = slice(layout.names, layout.names + 1)
    cells = [list(row[first]) for group in layout.groups for row in group.rows]
    return any(group.reason for group in layout.groups) or any(cell != [DASH] for cell in cells)


def averaged(evidence: Evidence, values: pd.DataFrame, blocks: Blocks) -> pd.DataFrame:
    """Return the `summary` of what blocks show, in the units of tables, with the title of its data.

    values: seed, fold, metric, value and what else tells numbers apart.
    """
    known = in_units(values, METRICS.values())
    shown = known[known.index.isin(np.concatenate([block.select(known).index for block in blocks]))]
    found = summary(shown, list(known.columns.difference(["seed", "fold", "value"], sort=False)))
    return found.assign(data=[evidence.title(name) for name in owners(found)["name"]])


def metrics(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return the metrics of test samples, or of what a study measures, by model or cell, decision rule and shares."""
    return averaged(evidence, identified(evidence, evidence.table("metrics.csv")), blocks)


def own(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return `metrics`, and where there are accuracies those of always naming the class most frequent in training."""
    frame = metrics(evidence, blocks)
    if not (frame["metric"] == "accuracy").any():
        return frame
    return pd.concat([frame, paper.majority(evidence)], ignore_index=True)


def trainings(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return `metrics`, and how training ended: its rule is empty. `setup` is width, epochs and threads.

    training_minutes are wall time of the steps alone; cpu_minutes are processor time of the whole run, evaluation included.
    """
    frame = averaged(evidence, identified(evidence, with_ends_of_training(evidence)), blocks)
    return frame.assign(setup=owners(frame)["name"].map({name: _setup(evidence, name) for name in evidence.at_hand()}))


def votes(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return `trainings`, and as metrics that end in _less the differences from cross-entropy in the same study.

    They are paired by seed and test sample where cells were compared so, otherwise by seed or fold.
    """
    compared = compared_over_samples(evidence)
    values = evidence.table("metrics.csv")
    values = identified(evidence, values[printed_reading(values) & ~values["name"].isin(compared["name"])])
    by_entropy = values["model"] == "cross-entropy"
    less = minus(values[~by_entropy], values[by_entropy], ["study", "metric", "seed", "fold"])
    less = less[list(values)].assign(metric=less["metric"] + "_less", other="cross-entropy")
    less = averaged(evidence, less, blocks)
    return pd.concat([trainings(evidence, blocks), less, paper.with_data(evidence, compared)], ignore_index=True)


def compared_over_samples(evidence: Evidence) -> pd.DataFrame:
    """Return what was compared over seeds and test samples: differences from cross-entropy, which end in _less, and the share of
    witnesses that seeds of a cell have in common.
    """
    found = both_ways(evidence.table("comparisons.csv")).rename(columns={"value": "mean", "seeds": "n"})
    less = found[found["other"] == "cross-entropy"].dropna(subset="cell").drop(columns="draws")
    less = less.assign(metric=less["metric"] + "_less")
    shared = found[found["metric"] == "shared_witnesses"].drop(columns="draws")
    rows = pd.concat([less, shared], ignore_index=True).assign(rule="", shares="")
    limits = ["mean", "low", "high"]
    return in_units(rows.astype(dict.fromkeys(limits, float)), METRICS.values(), limits)


def with_ends_of_training(evidence: Evidence) -> pd.DataFrame:
    """Return `metrics.csv`, and as further rows metrics of the last epoch and of the best one, and minutes."""
    history = evidence.table("history.csv").sort_values("epoch", kind="stable")
    run = ["name", "cell", "seed", "fold"]
    by_run = history.groupby(run, dropna=False)
    last = by_run.last().reindex(columns=["loss", "floor", "seconds", "operations", *ENDS])
    ends = last[ENDS].assign(
        above_floor=last["loss"] - last["floor"], best_validation=by_run["validation_accuracy"].max(),
        operations=last["operations"] / 1e12, training_minutes=last["seconds"] / 60,
    )  # fmt: skip
    rows = ends.reset_index().melt(run, var_name="metric")
    records = [(name, run) for name in evidence.at_hand() for run in evidence.runs(name)]
    minutes = [
        (name, run_cell(run), run["seed"], run["fold"], "cpu_minutes", run["cpu_seconds"] / 60) for name, run in records
    ]
    further = pd.concat([rows, pd.DataFrame(minutes, columns=list(rows))]).assign(rule="", shares="")
    return pd.concat([evidence.table("metrics.csv"), further], ignore_index=True)


def _setup(evidence: Evidence, study: str) -> str:
    runs, history = evidence.runs(study), evidence.frame(study, "history.csv")
    last = history.groupby("cell")["epoch"].max().astype(int)
    widths, epochs, threads = (
        " or ".join(map(str, sorted(set(values))))
        for values in ((run["settings"]["encoder"]["width"] for run in runs), last, (run["threads"] for run in runs))
    )
    return f"width {widths}, {epochs} epochs, {threads} thread(s)"


def further(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return metrics with the validation accuracy after the last epoch, what others report, whose `data` is the source, and the
    accuracy of always naming the class most frequent in training.
    """
    ours = averaged(evidence, identified(evidence, with_ends_of_training(evidence)), blocks)
    reported = REPORTED[REPORTED["dataset"].isin(evidence.expected)]
    theirs = reported.drop(columns="unit").rename(columns={"value": "mean", "source": "data"})
    theirs = theirs.assign(n=0, rule="", shares="")
    constant = paper.majority(evidence).query("metric == 'accuracy'")
    return pd.concat([ours, theirs, constant], ignore_index=True)


def rules(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return the metrics of both kernels by decision rule and class shares, of hours with their paired difference."""
    values = identified(evidence, evidence.table("metrics.csv"))
    values = values[values["model"].isin(CLAI)]
    # With equal shares the centred rule is the printed one, and the balanced one a multiple of it.
    values = values[(values["shares"] != "equal") | values["rule"].isin(["printed", "parzen"])]
    hourly = values.loc[values["metric"] == "auroc", "dataset"].unique()
    own, other = (values[(values["model"] == model) & values["dataset"].isin(hourly)] for model in CLAI)
    gaps = minus(own, other, ["dataset", "study", "seed", "fold", "shares", "rule", "metric"]).assign(other=CLAI[1])
    return averaged(evidence, pd.concat([values, gaps[[*values, "other"]]], ignore_index=True), blocks)


def comparisons(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return the differences of `paper.PAIRS`, model minus other; `p_holm` is p, adjusted for all of the table."""
    measured = in_units(both_ways(evidence.table("comparisons.csv")), METRICS.values(), ["value", "low", "high"])
    compared = identified(evidence, measured).rename(columns={"value": "mean"}).drop(columns=["study", "cell", "draws"])
    pairs = pd.MultiIndex.from_frame(compared[["model", "other"]]).isin(paper.PAIRS)
    frame = blocks[0].select(compared[pairs].assign(p_holm=np.nan))
    adjusted = holm(frame["p"].to_numpy(dtype=np.float64))
    return frame.assign(p_holm=adjusted, data=frame["dataset"].map(evidence.title))


def benchmark(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return seconds and peak memory of each schedule (`variant`) and size over repetitions; `setup` is device and threads."""
    values = evidence.table("benchmark.csv").rename(columns={"repetition": "seed", "quantity": "metric"})
    values = values.assign(cell="measurements", fold=np.nan)
    machines = "; ".join(f"{run['device']}, {run['threads']} thread(s)" for run in evidence.runs(BENCHMARK))
    return averaged(evidence, identified(evidence, values), blocks).assign(setup=machines)


def trials(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return a row a trial, with its score on validation samples.

    Settings are those that differ among the trials of a model, and `error` is the standard error of their means over seeds. The
    chosen trial has the number of `trials` and the `cpu_minutes` of all of them.
    """
    parts = [pd.DataFrame(columns=["name", "cell", "metric", "mean", "sd", "error"])]
    for tuning in [name for name in evidence.at_hand() if name.startswith(PREFIX)]:
        runs = evidence.runs(tuning)
        minutes = pd.Series([run["cpu_seconds"] / 60 for run in runs]).groupby(list(map(run_cell, runs))).sum()
        for _, own in _scores(evidence, tuning).groupby("model", sort=False):
            # Of a mean over seeds, with the variance pooled over trials.
            error = np.sqrt(sum(own["sd"] ** 2) / len(own) / own["n"].max())
            chosen = own["trial"] == own["trial"].iloc[chosen_trial(own["mean"].tolist(), error)]
            of_model = evidence.runs(tuning, list(own["cell"]))
            settings = pd.json_normalize([run["settings"] for run in of_model]).set_axis(list(map(run_cell, of_model)))
            settings = settings.astype(object).where(settings.notna(), None)
            texts = settings.map(str)
            drawn = settings.loc[~settings.index.duplicated(), (texts != texts.iloc[0]).any()].sort_index(axis=1)
            spent = own["cell"].map(minutes)
            parts.append(own.drop(columns="model").assign(
                name=tuning, error=error, trials=len(own), chosen=chosen,
                cpu_minutes=spent.mask(chosen, spent.sum()), settings=[_text(drawn.loc[cell]) for cell in own["cell"]],
                setup=METRICS[own["metric"].iloc[0]].title,
            ))  # fmt: skip
    columns = ["mean", "sd", "error"]
    return paper.with_data(evidence, in_units(pd.concat(parts, ignore_index=True), METRICS.values(), columns))


def _scores(evidence: Evidence, tuning: str) -> pd.DataFrame:
    """Return the validation score of each trial over seeds: AUROC of two classes, accuracy of more. Trials are in order."""
    metrics = evidence.metrics(tuning)
    metric = "auroc" if (metrics["metric"] == "auroc").any() else "accuracy"
    scores = metrics[metrics["metric"] == metric].groupby("cell")["value"].agg(mean="mean", sd="std", n="size")
    cells = pd.DataFrame(evidence.expected[tuning]["cells"]).T.set_axis(["model", "trial"], axis=1)
    return cells.join(scores, how="inner").rename_axis("cell").reset_index().assign(metric=metric)


def _text(settings: pd.Series) -> str:
    """Return settings as the table has them: `batch_size 64, learning_rate 0.0032`."""
    texts = {key: " or ".join(map(str, v)) if isinstance(v, list) else str(v) for key, v in settings.items()}
    return ", ".join(f"{str(key).rpartition('.')[2]} {text}" for key, text in texts.items())


def datasets(evidence: Evidence, blocks: Blocks) -> pd.DataFrame:
    """Return datasets as used: columns dataset, quantity, ours, printed (the figure that the paper states, or empty)."""
    rows, texts = [], printed("text")
    for name in evidence.expected:
        figures = texts.loc[texts["row"] == name, ["metric", "value"]].itertuples(index=False)
        stated = {STATED[figure][0]: f"{value:,.0f} {STATED[figure][1]}" for figure, value in figures}
        ours = _described(evidence.description(name)) if evidence.has(name) else {"Data": evidence.not_run(name)}
        quantities = dict.fromkeys([*ours, *stated])
        rows += [(name, quantity, ours.get(quantity, "not run"), stated.get(quantity, "")) for quantity in quantities]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "ours", "printed"])


def _described(content: Mapping[str, Any]) -> dict[str, str]:
    # The splits of recordings are the whole ("all") and its test folds, those of other kinds are disjoint.
    whole = {"all": content["splits"]["all"]} if content["kind"] == "recordings" else content["splits"]
    flow, samples = content.get("flow", []), sum(int(split["n"]) for split in whole.values())
    people = pd.DataFrame(list(whole.values())).filter(["recordings", "subjects", "groups"]).sum().astype(int).to_dict()
    usable = [("recordings", step["n"]) for step in flow if step["step"] == "usable"]
    classes = content["classes"]
    texts = {
        "Data": f"{content['title']}, version {content['version']}",
        "Samples": f"{samples:,} {UNITS[content['kind']]}",
        "Recordings": ", ".join(f"{n:,} {name}" for name, n in (dict(usable) | people).items()),
        "Classes": str(len(classes)),
        "Split": str(content["split_rule"]),
        **{f"Split {name}": f"{split['n']:,}: {_shares(classes, split['counts'])}" for name, split in whole.items()},
        "Cohort": "; ".join(f"{step['n']:,} {step['unit']}: {step['step']}" for step in flow),
        "Exclusions": "; ".join(f"{item['reason']}: {item['count']:,}" for item in content["exclusions"]) or "none",
        "Lacking": ", ".join(content.get("lacking", [])),
        "Files": _files(content["files"]),
        "Licence, access": f"{content['licence']}; {content['access']}",
    }
    return {quantity: text for quantity, text in texts.items() if text}


def _shares(classes: Sequence[str], counts: Sequence[int]) -> str:
    total = sum(counts)
    shares = [f"{100 * count / total:.1f} %" for count in counts] if total else []
    if shares and len(set(shares)) == 1:
        return f"{shares[0]} each"
    return ", ".join(f"{name} {share}" for name, share in zip(classes, shares, strict=False))


def _files(files: Sequence[Mapping[str, Any]]) -> str:
    """Return each file with the beginning of its checksum; of many, their number, size and one checksum over all of theirs."""
    if len(files) <= 2:
        return "; ".join(f"{item['file']} ({str(item['checksum'])[:19]})" for item in files)
    lines = "".join(f"{item['file']} {item['checksum']}\n" for item in files)
    total = sum(int(item["size"]) for item in files) / 1e6
    return f"{len(files):,} files, {total:,.1f} MB (sha256 of their list: {hashlib.sha256(lines.encode()).hexdigest()[:12]})"


FRAMES: dict[str, Frame] = {
    make.__name__: make
    for make in (metrics, own, trainings, votes, further, rules, comparisons, benchmark, trials, datasets)
}
"""What a declared table is made of, by its name in outputs.yaml."""
