"""
Calibrated probabilities
========================

Scores lie in [-1, 1], so that the softmax of the paper is never sure. One temperature, fitted on samples that training left out,
turns scores into probabilities.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from clailearn import CLaIClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``calibration=2`` holds out half of the samples, fits the temperature on their scores, and then trains on all samples. It
# changes no label.
ax = plt.subplots(layout="constrained")[1]
ax.plot([0, 1], [0, 1], ":", color="0.4")
for name, calibration in (("softmax", None), ("temperature", 2)):
    model = CLaIClassifier(calibration=calibration, epochs=15, random_state=0).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test)
    right, confidence = probabilities.argmax(1) == y_test, probabilities.max(1)
    share, mean = calibration_curve(right, confidence, n_bins=10)
    ax.plot(mean, share, marker="o", label=name)
    loss = log_loss(y_test, probabilities)
    print(f"{name}: accuracy {model.score(X_test, y_test):.3f}, log loss {loss:.2f} nats")
accuracy = model.score(X_test, y_test)
print(f"temperature {model.calibration_:.3f}")
ax.set(xlabel="probability of the predicted label", ylabel="share of right labels")
ax.legend()
