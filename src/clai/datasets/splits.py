"""Divide a dataset at random, from a seed: by class, by subject or by patient."""

import numpy as np
import numpy.typing as npt

from clai.errors import InputError

Indices = npt.NDArray[np.int64]


def stratified_validation(y: Indices, share: float, seed: int) -> tuple[Indices, Indices]:
    """Draw `share` of the samples of each class for validation.

    y: (N,). Returns the ascending indices of training and of validation samples. Raises InputError where one of them gets
    less than one sample of a class.
    """
    from sklearn.model_selection import train_test_split

    counts = np.unique(y, return_counts=True)[1]
    if min(round(share * len(y)), round((1 - share) * len(y))) < len(counts) or counts.min() < 2:
        raise InputError(
            f"validation_share {share} of {len(y)} training samples leaves fewer than one for each of {len(counts)} "
            "classes: change datasets.<key>.validation_share or provide more samples"
        )

    training, validation = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    return np.sort(training), np.sort(validation)


def subject_split(
    subjects: Indices, test_share: float, validation_share: float, seed: int
) -> tuple[Indices, Indices, Indices]:
    """Divide subjects into training, validation and test, with at least one subject in each.

    subjects: (N,), repeats allowed. test_share: of all subjects. validation_share: of the subjects that are not for test.
    Returns three ascending arrays of subjects without repeats. Raises InputError for fewer than three subjects.
    """
    unique = np.unique(subjects)
    if len(unique) < 3:
        raise InputError(f"found recordings of {len(unique)} subjects, expected at least 3: one for each split")
    order = np.random.default_rng(seed).permutation(unique)
    n_test = min(max(1, round(test_share * len(order))), len(order) - 2)
    n_val = min(max(1, round(validation_share * (len(order) - n_test))), len(order) - n_test - 1)
    return np.sort(order[n_test + n_val :]), np.sort(order[n_test : n_test + n_val]), np.sort(order[:n_test])


def patient_folds(patients: Indices, positive: npt.NDArray[np.bool_], folds: int, seed: int) -> Indices:
    """Return the test fold (recordings,) of each recording, in 0 .. folds - 1.

    All recordings of a patient are in one fold, and folds share the positive recordings evenly.

    patients: (recordings,), the patient of each. positive: (recordings,), whether it has a positive hour. Raises InputError
    for fewer patients than folds with a positive recording, or without one.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    n_patients = len(np.unique(patients))
    stratum = positive.astype(np.int64)
    smallest = min(len(np.unique(patients[stratum == value])) for value in np.unique(stratum))
    if smallest < folds:
        raise InputError(
            f"found {n_patients} patients, {smallest} of them in the rarer of with and without a positive hour; "
            f"expected at least one of each for each of the {folds} folds. Lower `folds` or provide more recordings."
        )
    if n_patients == len(patients):
        splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed).split(patients, stratum)
    else:
        splitter = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=seed).split(
            patients, stratum, groups=patients
        )
    fold = np.full(len(patients), -1, dtype=np.int64)
    for k, (_, test) in enumerate(splitter):
        fold[test] = k
    return fold
