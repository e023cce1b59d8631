"""
Find wrong labels
=================

A label that the references of other folds vote against may be wrong. Such votes are compared with the simplest rule of this kind:
how many of a sample's nearest neighbours have its label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import PrecisionRecallDisplay, average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from clailearn import CLaIClassifier

# %%
# One label in ten is replaced by another class.
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
wrong = rng.random(len(y)) < 0.1
labels = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)

# %%
# Each sample is scored by a model that has not seen it: the probability that its label is another one.
models = {
    "votes": CLaIClassifier(epochs=10, calibration=None, random_state=0),
    "10 nearest neighbours": KNeighborsClassifier(10),
}
doubts = {}
for name, model in models.items():
    probability = cross_val_predict(model, X / 16, labels, cv=3, method="predict_proba")
    doubts[name] = 1 - probability[np.arange(len(labels)), labels]
    first = np.argsort(-doubts[name])[: wrong.sum()]
    precision = average_precision_score(wrong, doubts[name])
    print(
        f"{name}: average precision {precision:.3f}; {wrong[first].mean():.0%} of the {len(first)} most doubtful are wrong"
    )

# %%
# Both rules find wrong labels, and on these digits the neighbours find more. The curves tell how many right labels one has to
# look at.
axes = plt.subplots(layout="constrained")[1]
for name, doubt in doubts.items():
    PrecisionRecallDisplay.from_predictions(wrong, doubt, name=name, ax=axes)
axes.set(xlabel="share of the wrong labels that are found", ylabel="share that is wrong of what is looked at")
accuracy = average_precision_score(wrong, doubts["votes"])
