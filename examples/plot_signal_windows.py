"""
Windows of a signal
===================

A long signal is cut into windows, and a convolutional trunk over time tells which rhythm each window has.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from clailearn import CLaIClassifier

# %%
# Make twenty minutes of a noisy signal of 50 Hz, whose rhythm changes every ten seconds: slow, fast, or slow with bursts.
rate, seconds = 50, 2
generator = np.random.default_rng(0)
rhythm = generator.integers(3, size=120)
time = np.arange(120 * 10 * rate) / rate
now = np.repeat(rhythm, 10 * rate)
slow, fast = (np.sin(2 * np.pi * hertz * time) for hertz in (1.5, 6))
bursts = np.sin(2 * np.pi * 12 * time) * (np.sin(2 * np.pi * 0.7 * time) > 0.6)
signal = np.select([now == 0, now == 1], [slow, fast], slow + bursts) + 0.8 * generator.normal(size=len(time))

# %%
# Cut windows of two seconds. The first two thirds of the time are for training: neighbouring windows should not be split between
# training and test.
X = signal.reshape(-1, 1, rate * seconds)
y = np.array(["slow", "fast", "bursts"])[np.repeat(rhythm, 10 // seconds)]
train, test = slice(0, 400), slice(400, None)


# %%
class Trunk(nn.Module):
    features = 32

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv1d(1, 16, 11, stride=2, padding=5), nn.BatchNorm1d(16), nn.ReLU()),
            *(nn.Conv1d(16, 32, 7, stride=2, padding=3), nn.BatchNorm1d(32), nn.ReLU()),
            *(nn.AdaptiveAvgPool1d(1), nn.Flatten()),
        )

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
model = CLaIClassifier(trunk=Trunk(), epochs=15, batch_size=32, precision="float32", calibration=None, random_state=0)
accuracy = model.fit(X[train], y[train]).score(X[test], y[test])
print(f"accuracy {accuracy:.3f}")

# %%
# A window of the test, and the reference that speaks most for its label.
(votes,) = model.votes(X[test][:1], k=1)
(reference,) = votes.support
figure, axes = plt.subplots(2, sharex=True, layout="constrained")
axes[0].plot(time[: rate * seconds], X[test][0, 0])
axes[0].set(title=f"predicted {votes.label}, is {y[test][0]}")
axes[1].plot(time[: rate * seconds], X[train][reference.item, 0], color="0.4")
axes[1].set(
    title=f"window {reference.item}, {reference.label}: similarity {reference.similarity:.2f}", xlabel="seconds"
)
