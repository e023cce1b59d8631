"""
A table with groups
===================

Rows of one patient resemble each other, so held-out rows of known patients are easier than new patients. Hold out whole patients,
for the test and for the calibration.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clailearn import CLaIClassifier

# %%
# Make 100 patients with ten rows each. Each patient has a level of her own in eight variables. Some are ill, which shifts the
# levels a little.
generator = np.random.default_rng(0)
patients = np.repeat(np.arange(100), 10)
ill = generator.random(100) < 0.4
levels = generator.normal(size=(100, 8)) + ill[:, None] * np.linspace(0, 0.8, 8)
X = levels[patients] + 0.3 * generator.normal(size=(1000, 8))
y = np.where(ill, "ill", "well")[patients]
train, test = next(GroupShuffleSplit(1, test_size=0.4, random_state=0).split(X, y, patients))

# %%
# Without ``groups``, calibration rows share patients with training rows, and probabilities are too sure about new patients. With
# ``groups``, the rows of a patient stay together.
settings = {"epochs": 20, "random_state": 0}
ax = plt.subplots(layout="constrained")[1]
for name, groups in (("rows apart", None), ("patients together", patients[train])):
    model = make_pipeline(StandardScaler(), CLaIClassifier(**settings))
    model.fit(X[train], y[train], claiclassifier__groups=groups)
    CalibrationDisplay.from_estimator(model, X[test], y[test], n_bins=5, name=name, ax=ax)
    print(f"{name}: log loss {log_loss(y[test], model.predict_proba(X[test])):.3f} nats")
accuracy = model.score(X[test], y[test])
print(f"accuracy {accuracy:.3f}")
