"""
A training loop of one's own
============================

The two halves of the method, a loss and a vote, in a plain loop of PyTorch.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from clailearn import AlignmentLoss, vote
from clailearn.kernels import Cosine

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
X, y = torch.from_numpy(images).float() / 16, torch.from_numpy(labels)
train, test = TensorDataset(X[:900], y[:900]), TensorDataset(X[900:], y[900:])

# %%
# The loss is the mean squared difference between similarities and targets: 1 for two samples of one class, and here -1/9 for two
# of different classes, as ten classes that lie evenly have. Any network that gives embeddings will do, such as a ResNet-18 of
# torchvision with ``fc = nn.Linear(512, 16)``; call its ``eval()`` before a vote.
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
loss = AlignmentLoss(Cosine(), target="simplex", classes=10)
optimiser = torch.optim.Adam([*encoder.parameters(), *loss.parameters()], lr=5e-3)

# %%
losses = []
for _ in range(20):
    for x, labels in DataLoader(train, batch_size=100, shuffle=True):
        optimiser.zero_grad()
        value = loss(encoder(x), labels)
        value.backward()
        optimiser.step()
        losses.append(value.item())

# %%
# A vote compares embeddings of new samples with those of references. Its largest score is the label.
with torch.no_grad():
    references = encoder(X[:900])
    f = vote(loss.kernel, encoder(X[900:]), references, y[:900])
accuracy = (f.argmax(1) == y[900:]).double().mean().item()
print(f"accuracy {accuracy:.3f}")

ax = plt.subplots(layout="constrained")[1]
ax.plot(losses)
ax.set(xlabel="step", ylabel="alignment loss", ylim=(0, None))
