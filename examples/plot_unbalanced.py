"""
Unbalanced classes
==================

The decision rule says how a vote treats class shares; training does not depend on it. The printed rule has an offset that favours
the rarer class far from all references, ``balanced`` compares mean similarities, and ``parzen`` is the Bayes rule with the class
shares of the training samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import balanced_accuracy_score, recall_score

from clailearn import CLaIClassifier

# %%
# Make two moons, one of them with few training samples. The test has as many samples of each, so the shares of the training
# samples mislead ``parzen``. (For two classes, the fourth rule, ``centred``, gives the labels of ``balanced``.)
X, y = make_moons(2000, noise=0.25, random_state=0)
rare = np.flatnonzero(y[:1000] == 1)
train = np.concatenate([np.flatnonzero(y[:1000] == 0), rare[: len(rare) // 20]])
X_test, y_test = X[1000:], y[1000:]

# %%
scores = {}
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharex=True, sharey=True)
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 40), np.linspace(-1.5, 2, 40)), -1)
for ax, rule in zip(axes, ("printed", "balanced", "parzen"), strict=True):
    model = CLaIClassifier(rule=rule, epochs=15, batch_size=32, calibration=None, random_state=0).fit(
        X[train], y[train]
    )
    predicted = model.predict(X_test)
    scores[rule] = score = balanced_accuracy_score(y_test, predicted)
    recall = recall_score(y_test, predicted, average=None)
    print(f"{rule}: balanced accuracy {score:.3f}, recall {recall[0]:.2f} and, of the rare class, {recall[1]:.2f}")
    labels = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(*np.moveaxis(grid, -1, 0), labels, levels=[-0.5, 0.5, 1.5], colors=["#cfe3f1", "#fbe0d2"])
    ax.scatter(*X[train].T, c=np.array(["#0072B2", "#D55E00"])[y[train]], s=5)
    ax.set(title=f"{rule}: {score:.2f}", xticks=[], yticks=[])
accuracy = max(scores.values())
