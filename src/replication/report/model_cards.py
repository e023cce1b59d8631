"""The card of a published model, a function of its record."""

from collections.abc import Mapping, Sequence
from typing import Any

from replication.report.labels import model_title
from replication.runs.models import CLAI

_SHOWN = {
    "accuracy": "accuracy", "macro_f1": "macro F1", "roc_auc": "ROC-AUC", "auroc": "AUROC", "auprc": "AUPRC",
    "ece_scaled": "calibration error of the probabilities", "ece_calibrated": "calibration error of the probabilities",
}  # fmt: skip
_INPUTS = {
    "images": "images of {0} x {1} pixels with {2} channels, 0 to 255",
    "features": "rows of {0} features, in the units of the table that the model was trained on",
    "signals": "epochs of {0} channels and {1} samples, in microvolt",
    "recordings": "hours of one stay, each with {0} inputs that `replication.datasets.hourly_inputs` computes",
}
_PATIENTS = "It is no medical device. No decision about a patient may rest on it."


def card(record: Mapping[str, Any], limits: Sequence[str]) -> str:
    """Return the card as Markdown.

    Args:
        record: `model.json` of a published model.
        limits: sentences on what the data do not cover, from the dataset's settings.
    """
    data, run = record["data"], record["record"]
    title = f"{model_title(record['model'])} on {data['title']}"
    parts = [
        f"# {title}",
        f"Classifies {_INPUTS[data['kind']].format(*record['input']['shape'])}: {', '.join(data['classes'])}.",
        "## Use",
        _use(record),
        "## Data",
        f"{data['title']}, {data['version']}. Licence: {data['licence']}. It was trained on the files with these checksums:",
        "\n".join(f"- `{file}`: `{checksum}`" for file, checksum in sorted(run["data"].items())),
        "## Training",
        _training(record),
        "## Accuracy",
        _metrics(record),
        "## Intended use",
        "To check and reuse the results of this replication, and to look at which references a decision rests on. "
        + (_PATIENTS if _medical(data) else "It is no product."),
        "## Limits",
        "\n".join(f"- {sentence}" for sentence in [*_limits(record), *limits]),
    ]
    return "\n\n".join(parts) + "\n"


def _medical(data: Mapping[str, Any]) -> bool:
    return data["kind"] != "images" or "mnist" in str(data["source"])


def _use(record: Mapping[str, Any]) -> str:
    lines = [
        "```python",
        "import clai",
        "",
        "model = clai.load(folder)  # the folder of this card",
        "labels = model.predict(x)",
    ]
    if record["model"] in CLAI:
        lines.append("votes = model.votes(x, k=5)  # the references for and against each label")
    lines += ["probabilities = model.probabilities(x)", "```"]
    text = "\n".join(lines)
    if record["data"]["kind"] in ("images", "features"):
        what = "pictures/" if record["data"]["kind"] == "images" else "rows.csv"
        text += f"\n\nOn the command line: `clai predict {'<this folder>'} {what}`."
    return text


def _training(record: Mapping[str, Any]) -> str:
    run, settings = record["record"], record["record"]["settings"]
    training, encoder = settings["training"], settings["encoder"]
    fold = "" if run["fold"] is None else f", fold {run['fold']} held out"
    return (
        f"Encoder {encoder['trunk']} of width {encoder['width']}; {training['epochs']} epochs of batches of "
        f"{training['batch_size']} with {training['optimiser']}, in {training['precision']}. Run `{record['run']}` (seed "
        f"{run['seed']}{fold}), commit `{run['commit']}`, on {run['hardware']}. `model.json` holds all settings and versions."
    )


def _metrics(record: Mapping[str, Any]) -> str:
    of_run, published = record["metrics"]["run"], record["metrics"]["published"]
    lines = ["| on the test samples | the run | this model |", "| --- | ---: | ---: |"]
    lines += [
        f"| {title} | {of_run[name]:.4f} | {published[name]:.4f} |"
        for name, title in _SHOWN.items()
        if name in of_run and name in published
    ]
    if record["model"] not in CLAI:
        return "\n".join([*lines, "", "`model.safetensors` has the weights of the run."])
    return "\n".join(
        [
            *lines,
            "",
            f"In the run {_voters(record)} vote. This model keeps a sample of them, as many of each class as far as there are, "
            "and weights each class by its share of the training data.",
        ]
    )


def _voters(record: Mapping[str, Any]) -> str:
    number = record["record"]["settings"]["inference"]["references"]
    return f"all {sum(record['population']):,} training samples" if number == "all" else f"{number:,} training samples"


def _limits(record: Mapping[str, Any]) -> list[str]:
    """Return what follows from the record itself."""
    data, settings = record["data"], record["record"]["settings"]
    limits = ["It always answers with one of its training classes."]
    if data["miniature"]:
        limits.append("Its data are synthetic miniatures: it shows that the software works and nothing else.")
    if data["kind"] in ("images", "signals") and settings.get("normalise_test_separately"):
        limits.append(
            "Inputs are normalised with statistics of the test set, as in the paper. Inputs of another origin need statistics of "
            "their own in `model.json`."
        )
    if record["model"] in CLAI:
        limits.append("A vote says which training samples are similar to the model. It is no reason for the label.")
    return limits
