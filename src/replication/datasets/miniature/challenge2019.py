"""A miniature of the PhysioNet/CinC Challenge 2019: zips of pipe-separated records."""

from pathlib import Path

import numpy as np

from replication.datasets.miniature.vital_signs import vital_signs
from replication.datasets.miniature.zips import write_zip

# Decimals that the source gives of each vital sign.
_DIGITS = (0, 0, 2, 0, 1, 0, 0)
HEADER = (
    "HR|O2Sat|Temp|SBP|MAP|DBP|Resp|EtCO2|BaseExcess|HCO3|FiO2|pH|PaCO2|SaO2|AST|BUN|Alkalinephos|Calcium|"
    "Chloride|Creatinine|Bilirubin_direct|Glucose|Lactate|Magnesium|Phosphate|Potassium|Bilirubin_total|"
    "TroponinI|Hct|Hgb|PTT|WBC|Fibrinogen|Platelets|Age|Gender|Unit1|Unit2|HospAdmTime|ICULOS|SepsisLabel"
)


def challenge2019(folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write `training_setA.zip` and `training_setB.zip` with 60 records each, one in five septic."""
    written = []
    for letter, first in (("A", 1), ("B", 100001)):
        observed = np.array([0.92, 0.88, 0.34, 0.85, 0.90, 0.52 if letter == "A" else 0.85, 0.90])
        members = {}
        for number in range(first, first + 60):
            septic = rng.random() < 0.2 or number % 30 == 1
            hours = int(rng.integers(20, 56))
            onset = hours - 4 if septic else None
            values = vital_signs(hours, onset, rng)
            values[rng.random(values.shape) > observed] = np.nan
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 2] = 20.9
            if rng.random() < 0.1:
                values[int(rng.integers(hours)), 6] = 100
            if letter == "A" and rng.random() < 0.3:
                values[:, 5] = np.nan
            start = 1 if rng.random() < 0.85 else int(rng.integers(2, 9))
            labelled = hours if onset is None else onset - 6
            age, gender = round(float(rng.uniform(20, 89)), 2), int(rng.integers(2))
            admitted = round(-float(rng.exponential(20)), 2)
            lines = [HEADER]
            for hour in range(hours):
                vitals = [_number(v, d) for v, d in zip(values[hour], _DIGITS, strict=True)]
                laboratory = ["NaN"] * (HEADER.count("|") - 13)
                rest = [age, gender, "NaN", "NaN", admitted, start + hour, int(hour >= labelled)]
                lines.append("|".join([*vitals, *laboratory, *map(str, rest)]))
            members[f"training_set{letter}/p{number:06d}.psv"] = ("\n".join(lines) + "\n").encode()
        path = folder / f"training_set{letter}.zip"
        write_zip(path, members)
        written.append(path)
    return written


def _number(value: float, digits: int) -> str:
    return "NaN" if np.isnan(value) else f"{value:.{digits}f}"
