"""Divide a dataset at random, from a seed: by class, by subject or by patient."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from clailearn.errors import InputError

Indices = npt.NDArray[np.int64]

DEVELOPMENT = -1
"""In place of a fold: the rows of patients who are in no fold, on whom settings are chosen."""


def stratified_validation(
    y: Indices, share: float, seed: int, classes: Sequence[str], key: str = "validation_share"
) -> tuple[Indices, Indices]:
    """Return ascending indices for training and for validation, with `share` of each class of y (N,), at least one sample.

    key: the setting of the share. Raises InputError, naming key and class, for a class of too few samples.
    """
    from sklearn.model_selection import train_test_split

    parts: list[Indices] = []
    with suppress(ValueError):  # of scikit-learn, for too few samples
        parts = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    counts = np.bincount(y, minlength=len(classes))
    if not parts or any(len(np.unique(y[part])) < len(classes) for part in parts):
        raise InputError(
            f"{key}: found {counts.min()} of {len(y)} samples in class '{classes[int(counts.argmin())]}', too few for a share of "
            f"{share:g} with at least one sample of each class on either side. Change `{key}` or provide more samples."
        )
    return np.sort(parts[0]), np.sort(parts[1])


def group_split(
    groups: Indices, test_share: float, validation_share: float, seed: int, unit: str
) -> tuple[Indices, Indices, Indices]:
    """Divide groups (N,), such as subjects, into training, validation and test, ascending, with at least one group in each.

    validation_share: of the groups that are not for test. unit: what a message calls the groups. Raises InputError for fewer than
    three groups.
    """
    unique = np.unique(groups)
    if len(unique) < 3:
        raise InputError(f"found {len(unique)} {unit}, expected at least 3: one for each split. Provide more of them.")
    order = np.random.default_rng(seed).permutation(unique)
    n_test = min(max(1, round(test_share * len(order))), len(order) - 2)
    n_val = min(max(1, round(validation_share * (len(order) - n_test))), len(order) - n_test - 1)
    return np.sort(order[n_test + n_val :]), np.sort(order[n_test : n_test + n_val]), np.sort(order[:n_test])


def rows_of_groups(
    groups: Indices,
    y: Indices,
    classes: Sequence[str],
    test_share: float,
    validation_share: float,
    seed: int,
    unit: str,
) -> list[Indices]:
    """Return the ascending rows for training, validation and test of `group_split`; raise InputError where one lacks a class."""
    parts = group_split(groups, test_share, validation_share, seed, unit)
    rows = [np.flatnonzero(np.isin(groups, part)) for part in parts]
    for split, part, drawn in zip(("train", "val", "test"), parts, rows, strict=True):
        for absent in np.setdiff1d(np.arange(len(classes)), y[drawn]):
            having, of = len(np.unique(groups[y == absent])), len(np.unique(groups))
            raise InputError(
                f"found no sample of class '{classes[absent]}' among the {len(part)} {unit} for {split}, expected every class in "
                f"every split; {having} of {of} have it. Change test_share or validation_share of the entry, or split_seed, or "
                "leave the class out."
            )
    return rows


def draw_patients(
    patients: Indices, y: Indices, candidates: npt.NDArray[np.bool_], share: float, seed: int
) -> npt.NDArray[np.bool_]:
    """Draw this share of the candidate patients, at least one with and one without a positive row, and return their rows.

    Patients are drawn and not recordings, because the stays of one patient resemble each other. Patients with a positive row
    and patients without one are drawn at the same share. The draw of the positive ones does not depend on the others. patients,
    y, candidates: (rows,).
    """
    generator = np.random.default_rng(seed)
    positive = np.unique(patients[candidates & (y == 1)])
    strata = (positive, np.setdiff1d(np.unique(patients[candidates]), positive))
    drawn = [generator.permutation(stratum)[: max(1, round(share * len(stratum)))] for stratum in strata]
    return np.isin(patients, np.concatenate(drawn)) & candidates


def patient_folds(patients: Indices, positive: npt.NDArray[np.bool_], folds: int, seed: int) -> Indices:
    """Return the test fold (recordings,) of each recording, in 0 .. folds - 1.

    All recordings of a patient are in one fold, and folds share the positive recordings evenly. Raises InputError for fewer
    patients than folds with a positive recording, or without one.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    stratum = positive.astype(np.int64)
    found = [len(np.unique(patients[stratum == value])) for value in (1, 0)]
    if 0 < min(found) < folds or max(found) < folds:
        raise InputError(
            f"folds: found {found[0]} patients with a positive hour and {found[1]} without one, expected at least {folds} of "
            "each, or none of one kind: one for each fold. Lower `folds` or admit more recordings."
        )
    alone = len(np.unique(patients)) == len(patients)
    splitter = (StratifiedKFold if alone else StratifiedGroupKFold)(folds, shuffle=True, random_state=seed)
    fold = np.full(len(patients), -1, dtype=np.int64)
    for k, (_, test) in enumerate(splitter.split(patients, stratum, groups=None if alone else patients)):
        fold[test] = k
    return fold


def require_classes(y: Indices, folds: Indices, classes: Sequence[str]) -> None:
    """Raise InputError, naming the fold, unless each fold, the rows beside it, and development patients hold every class."""
    in_folds = folds != DEVELOPMENT
    parts = [
        (f"folds: the rows of fold {fold}{part}", rows, "Lower `folds` or admit more recordings.")
        for fold in np.unique(folds[in_folds])
        for part, rows in (("", folds == fold), (" beside it, for training,", in_folds & (folds != fold)))
    ]
    if not in_folds.all():
        remedy = "Raise `development_share`, or set it to null for none."
        parts.append(("development_share: the rows of development patients", ~in_folds, remedy))
    for part, rows, remedy in parts:
        counts = np.bincount(y[rows], minlength=len(classes))
        if not counts.all():
            found = ", ".join(f"{n} of '{name}'" for name, n in zip(classes, counts, strict=True))
            raise InputError(f"{part} are {found}; expected some of each class. {remedy}")
