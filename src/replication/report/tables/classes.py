"""Table 2: indices, labels and colours of classes."""

import pandas as pd

from replication.report.labels import CLASS_COLOURS, CLASS_LABELS, CLASS_TITLES
from replication.report.latex import escape, floating, row
from replication.report.tables.parts import Sources


def classes_frame(sources: Sources) -> pd.DataFrame:
    """Return the paper's class indices, labels and colours: columns dataset, index, label, colour."""
    rows = [
        {"dataset": key, "index": index, "label": label, "colour": CLASS_COLOURS[index]}
        for key, labels in CLASS_LABELS.items()
        for index, label in enumerate(labels)
    ]
    return pd.DataFrame(rows)


def classes_tex(frame: pd.DataFrame, sources: Sources, text: str) -> str:
    """Return table 2, a block of columns for each dataset."""
    heads = [rf"\multicolumn{{3}}{{c}}{{{escape(CLASS_TITLES[key])}}}" for key in CLASS_LABELS]
    trims = ["r", *["lr"] * (len(heads) - 2), "l"]
    rules = " ".join(rf"\cmidrule({trim}){{{3 * i + 1}-{3 * i + 3}}}" for i, trim in enumerate(trims))
    body = "\\toprule\n" + row(*heads) + rules + "\n" + row(*["Index", "Label", "Colour"] * len(heads)) + "\\midrule\n"
    for index in range(max(map(len, CLASS_LABELS.values()))):
        line: list[str] = []
        for key in CLASS_LABELS:
            entry = frame[(frame["dataset"] == key) & (frame["index"] == index)]
            if entry.empty:
                line += ["", "", ""]
            else:
                colour = str(entry["colour"].iloc[0]).lstrip("#").upper()
                swatch = rf"\textcolor[HTML]{{{colour}}}{{\rule{{0.8em}}{{0.8em}}}}"
                line += [str(index), escape(str(entry["label"].iloc[0])), swatch]
        body += row(*line)
    return floating(body + "\\bottomrule\n", "clc" * len(heads), text, "tab:class_mappings", sources.evidence.miniature)
