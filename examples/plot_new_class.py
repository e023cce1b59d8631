"""
A new class without training
============================

With one embedding for all classes, a handful of references brings in a new class. Nothing is trained again, and references can
leave as easily as they came.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from clailearn import CLaIClassifier

# %%
# Train on eight of the ten digits.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
new = np.isin(y_train, [4, 6])
model = CLaIClassifier(conditioning=None, target="simplex", rule="balanced", epochs=20, random_state=0)
model.fit(X_train[~new], y_train[~new])
print(model.classes_)

# %%
# Add the other two digits, a few references at a time. The rule ``balanced`` compares mean similarities, whatever the number of
# references of a class.
rows = np.concatenate([np.flatnonzero(y_train == label)[:64].reshape(-1, 1) for label in (4, 6)], axis=1)
old_test = ~np.isin(y_test, [4, 6])
numbers, accuracies = [], []
for first, last in [(0, 1), (1, 4), (4, 16), (16, 64)]:
    added = rows[first:last].ravel()
    model.add_references(X_train[added], y_train[added])
    right = model.predict(X_test) == y_test
    numbers.append(last)
    accuracies.append((right[old_test].mean(), right[~old_test].mean()))
accuracy = right.mean()
print(model.classes_, f"accuracy {accuracy:.3f}")

# %%
ax = plt.subplots(layout="constrained")[1]
ax.plot(numbers, accuracies, marker="o", label=["digits of the training", "new digits"])
ax.set(
    xscale="log",
    xticks=numbers,
    xticklabels=numbers,
    xlabel="references of each new digit",
    ylabel="accuracy",
    ylim=(0, 1),
)
ax.minorticks_off()
ax.legend(frameon=False, loc="lower right")

# %%
# References leave by their number in ``reference_indices_``. A class that keeps none is gone.
of_six = model.reference_indices_[model.classes_[model.reference_labels_] == 6]
print(model.remove_references(of_six).classes_)
