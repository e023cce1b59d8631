"""
Calibrated probabilities
========================

Scores lie in [-1, 1], so that the softmax of the paper is never sure. One temperature, fitted on samples that training left out,
turns scores into probabilities.
"""

from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from clailearn import CLaIClassifier
from clailearn.plots import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``calibration=2`` holds out half of the samples, fits the temperature on their scores, and then trains on all samples. It
# changes no label.
ax = None
for name, calibration in (("softmax", None), ("temperature", 2)):
    model = CLaIClassifier(calibration=calibration, epochs=15, random_state=0).fit(X_train, y_train)
    display = ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax)
    ax = display.ax_
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name}: accuracy {model.score(X_test, y_test):.3f}, log loss {loss:.2f} nats")
accuracy = model.score(X_test, y_test)
print(f"temperature {model.calibration_:.3f}")
