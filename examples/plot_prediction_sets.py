"""
Prediction sets with a guarantee
================================

Around any classifier of scikit-learn, MAPIE gives sets of labels that hold the right one as often as asked, whatever the
probabilities are worth. They cost samples that training does not see.
"""

import matplotlib.pyplot as plt
import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from clailearn import CLaIClassifier

# %%
# A third of the digits trains, a third makes sets, a third tests.
X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, test_size=2 / 3, stratify=y, random_state=0)
X_sets, X_test, y_sets, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)
model = CLaIClassifier(epochs=5, random_state=0).fit(X_train, y_train)
accuracy = model.score(X_test, y_test)
print(f"accuracy {accuracy:.3f}")

# %%
# Coverage is the share of test digits whose set holds the right label. It should be what is asked, up to chance.
levels = [0.9, 0.95, 0.99]
sets = SplitConformalClassifier(model, confidence_level=levels, prefit=True).conformalize(X_sets, y_sets)
_, members = sets.predict_set(X_test)  # (samples, classes, levels)
coverage = members[np.arange(len(y_test)), y_test].mean(0)
sizes = members.sum(1).mean(0)
for level, covered, size in zip(levels, coverage, sizes, strict=True):
    print(f"asked {level:.0%}: coverage {covered:.1%}, {size:.2f} labels a set")

# %%
# The digits with the largest sets.
hardest = np.argsort(-members[:, :, -1].sum(1), kind="stable")[:6]
figure, axes = plt.subplots(1, 6, figsize=(9, 2), layout="constrained")
for ax, sample in zip(axes, hardest, strict=True):
    ax.imshow(X_test[sample].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[sample]}: {{{', '.join(map(str, np.flatnonzero(members[sample, :, -1])))}}}", fontsize=8)
    ax.set_axis_off()
