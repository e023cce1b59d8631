"""
Digits, and the references that vote for them
=============================================

A classifier that votes can show its reasons: the training samples that speak for a label, and those that speak against it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from clailearn import CLaIClassifier

# %%
# Learn from half of the digits. Pixels are scaled to [0, 1].
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
model = CLaIClassifier(epochs=20, calibration=None, random_state=0).fit(X_train, y_train)
predicted = model.predict(X_test)
accuracy = np.mean(predicted == y_test)
print(f"accuracy {accuracy:.3f}")

# %%
# ``votes`` names, for each input, the most similar references of the predicted label and of other labels. ``item`` is the row of
# the reference in ``X_train``.
(votes,) = model.votes(X_test[:1], k=2)
print(votes.label, round(votes.score, 3))
print(*votes.support, *votes.opposition, sep="\n")

# %%
# Two digits with a right prediction, and two with a wrong one. Blue references have the predicted label, red ones another; the
# number is the vote. A similar reference of another label votes against the prediction, a dissimilar one votes for it.
right, wrong = (np.flatnonzero((predicted == y_test) == outcome)[:2] for outcome in (True, False))
shown = np.concatenate([right, wrong])
figure, axes = plt.subplots(4, 9, figsize=(9, 6), layout="constrained")
for row, picture, sample in zip(axes, X_test[shown].reshape(-1, 8, 8), model.votes(X_test[shown], k=4), strict=True):
    row[0].imshow(picture, cmap="gray_r")
    row[0].set_title(f"{sample.label}?")
    for ax, vote in zip(row[1:], [*sample.support, *sample.opposition], strict=True):
        ax.imshow(X_train[vote.item].reshape(8, 8), cmap="gray_r")
        colour = "tab:blue" if vote.label == sample.label else "tab:red"
        ax.set_title(f"{vote.label}\n{vote.vote:+.4f}", fontsize=9, color=colour)
for ax in axes.flat:
    ax.set_axis_off()

# %%
# Embeddings of the test digits under all ten conditions, in the plane of their two first principal components.
shown = PCA(2, random_state=0).fit_transform(model.transform(X_test))
points = plt.subplots(layout="constrained")[1].scatter(*shown.T, c=y_test, cmap="tab10", s=10)
points.axes.legend(*points.legend_elements(), title="digit")
points.axes.set(xticks=[], yticks=[], aspect="equal")
