"""The card of a published model, a function of its record."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from replication.report.labels import model_title
from replication.runs.registry import CLAI, REPOSITORY

METRICS = {
    "accuracy": "accuracy", "macro_f1": "macro F1", "roc_auc": "ROC-AUC", "auroc": "AUROC", "auprc": "AUPRC",
    "ece_scaled": "calibration error of the probabilities", "ece_calibrated": "calibration error of the probabilities",
}  # fmt: skip
"""What a card shows, with its title."""
INPUTS = {
    "images": "images of {0} x {1} pixels with {2} channels, 0 to 255",
    "features": "rows of {0} features, in the units of the table that the model was trained on",
    "signals": "epochs of {0} channels and {1} samples, in the unit of the signals that the model was trained on",
    "recordings": "hours of one stay, each with {0} inputs that `replication.datasets.recordings.hourly_inputs` computes",
}
TEMPLATE = (REPOSITORY / "workflow" / "report" / "model_card.md").read_text(encoding="utf-8")


def card(record: Mapping[str, Any], limits: Sequence[str]) -> str:
    """Return the card as Markdown, with the YAML header that model hubs read.

    Args:
        record: `model.json` of a published model.
        limits: sentences on what the data do not cover, from the dataset's settings.
    """
    data, run, voting = record["data"], record["record"], record["model"] in CLAI
    settings, run_metrics, published = run["settings"], record["metrics"]["run"], record["metrics"]["published"]
    title = f"{model_title(record['model'])} on {data['title']}"
    shown = {METRICS[name]: name for name in METRICS if name in run_metrics and name in published}
    if "ROC-AUC" in shown:  # of two classes the same area
        shown.pop("AUROC", None)
    task = "image-classification" if record["input"]["kind"] == "images" else "tabular-classification"
    results = {
        "task": {"type": task},
        "dataset": {"name": data["title"], "type": data["dataset"]},
        "metrics": [{"type": name, "name": text, "value": round(published[name], 4)} for text, name in shown.items()],
    }
    header = {
        "library_name": "clailearn", "license": "other", "license_name": "licence of the data", "pipeline_tag": task,
        "tags": ["kernel-alignment", record["model"]], "model-index": [{"name": title, "results": [results]}],
    }  # fmt: skip
    return TEMPLATE.format(
        header=yaml.safe_dump(header, sort_keys=False),
        title=title,
        inputs=INPUTS[record["input"]["kind"]].format(*record["input"]["shape"]),
        classes=", ".join(record["classes"]) + ", the positive class" * (len(record["classes"]) == 2),
        votes="\nvotes = model.votes(x, k=5)  # the references for and against each label" if voting else "",
        data=data,
        encoder=settings["encoder"],
        training=settings["training"],
        run=run,
        metrics="\n".join(
            f"| {text} | {run_metrics[name]:.4f} | {published[name]:.4f} |" for text, name in shown.items()
        ),
        references=_references(record) if voting else "`model.safetensors` holds the weights of the run.",
        limits="\n".join(f"- {sentence}" for sentence in [*_limits(record), *limits]),
    )


def _references(record: Mapping[str, Any]) -> str:
    number, population = record["record"]["settings"]["inference"]["references"], sum(record["population"])
    voting = f"all {population:,}" if number == "all" or number >= population else f"{number:,} of {population:,}"
    return (
        f"In the run, {voting} training samples vote. This model keeps a sample of them, spread evenly over the classes, and "
        "weights each class by its share of the training samples."
    )


def _limits(record: Mapping[str, Any]) -> list[str]:
    data, settings = record["data"], record["record"]["settings"]
    images_or_signals = record["input"]["kind"] in ("images", "signals")
    applies = {
        "It always answers with one of its training classes.": True,
        "Its data are synthetic miniatures: it shows that the software works and nothing else.": data["miniature"],
        "It is no medical device. No decision about a patient may rest on it.":
            record["input"]["kind"] != "images" or data["source"] == "medmnist",
        "Inputs are normalised with statistics of the test set, as in the paper. Inputs of another origin need statistics of "
        "their own in `model.json`.": images_or_signals and settings.get("normalise_test_separately"),
        "A vote shows which training samples the model finds similar. It does not explain the label.":
            record["model"] in CLAI,
    }  # fmt: skip
    return [sentence for sentence, holds in applies.items() if holds]
