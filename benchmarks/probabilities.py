"""Compare the probabilities of CLaIClassifier with those of classifiers that a user of scikit-learn would take.

`python benchmarks/probabilities.py` prints log loss, calibration error, accuracy and processor seconds of fitting: means over
three stratified folds of scikit-learn's digits, wine and breast cancer, with standardised inputs and default parameters.
An SVC gets probabilities from Platt's method on five folds: its own `probability=True`, which is deprecated and couples pairs
of classes, or `CalibratedClassifierCV`, which takes its place and calibrates one class against the rest.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from clai import CLaIClassifier
from replication.metrics.classification import expected_calibration_error, top_label

FOLDS, BINS = 3, 15
DATA = {"digits": load_digits, "wine": load_wine, "breast cancer": load_breast_cancer}
CLASSIFIERS: dict[str, Callable[[], BaseEstimator]] = {
    "CLaI-M": lambda: CLaIClassifier(random_state=0),
    "CLaI-M, bare": lambda: CLaIClassifier(calibration=None, random_state=0),
    "CLaI-C": lambda: CLaIClassifier(kernel="cosine", random_state=0),
    "CLaI-C, bare": lambda: CLaIClassifier(kernel="cosine", calibration=None, random_state=0),
    "SVC, probability=True": lambda: SVC(probability=True, random_state=0),
    "SVC, CalibratedClassifierCV": lambda: CalibratedClassifierCV(SVC(), ensemble=False),
    "MLP": lambda: MLPClassifier(max_iter=500, random_state=0),
}


def measure(new: Callable[[], BaseEstimator], X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return means over folds: log loss, top-label calibration error, accuracy in per cent, CPU seconds of `fit`."""
    folds = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), new())
        before = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - before
        p = model.predict_proba(X[test])
        error = expected_calibration_error(*top_label(y[test], p), bins=BINS)
        folds.append((log_loss(y[test], p), error, 100 * model.score(X[test], y[test]), seconds))
    return np.mean(folds, axis=0)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.filterwarnings("ignore", "The `probability` parameter", FutureWarning)
    print(
        "| data | classifier | log loss | ECE | accuracy (%) | CPU seconds |\n| --- | --- | ---: | ---: | ---: | ---: |"
    )
    with threadpool_limits(1):
        for data, load in DATA.items():
            for name, new in CLASSIFIERS.items():
                loss, error, accuracy, seconds = measure(new, *load(return_X_y=True))
                print(f"| {data} | {name} | {loss:.3f} | {error:.3f} | {accuracy:.1f} | {seconds:.2f} |", flush=True)
