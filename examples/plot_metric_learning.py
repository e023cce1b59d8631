"""
With samplers of pytorch-metric-learning
========================================

A batch of many classes has few pairs of one class. A sampler of pytorch-metric-learning draws equally many samples of each class
into a batch.
"""

import matplotlib.pyplot as plt
import torch
from pytorch_metric_learning.samplers import MPerClassSampler
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from clailearn import AlignmentLoss, vote
from clailearn.kernels import MahalanobisGaussian

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
X, y = torch.from_numpy(images).float() / 16, torch.from_numpy(labels)
train, references, test = slice(0, 900), slice(0, 900), slice(900, None)

# %%
# Batches of 60 samples: six of each digit.
sampler = MPerClassSampler(y[train], m=6, batch_size=60, length_before_new_iter=900)
batches = DataLoader(TensorDataset(X[train], y[train]), batch_size=60, sampler=sampler)
print(torch.bincount(next(iter(batches))[1]))

# %%
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
loss = AlignmentLoss(MahalanobisGaussian(size=16, metric="full"), target="product")
optimiser = torch.optim.Adam([*encoder.parameters(), *loss.parameters()], lr=5e-3)
for _ in range(15):
    values = []
    for x, labels in batches:
        optimiser.zero_grad()
        value = loss(encoder(x), labels)
        value.backward()
        optimiser.step()
        values.append(value.item())
print(f"loss of the last epoch {sum(values) / len(values):.3f}")

# %%
with torch.no_grad():
    z = encoder(X)
    f = vote(loss.kernel, z[test], z[references], y[references])
accuracy = (f.argmax(1) == y[test]).double().mean().item()
print(f"accuracy {accuracy:.3f}")

# %%
# Embeddings of the test digits in the plane of their two first principal components.
shown = PCA(2, random_state=0).fit_transform(z[test])
points = plt.subplots(layout="constrained")[1].scatter(*shown.T, c=y[test], cmap="tab10", s=10)
points.axes.legend(*points.legend_elements(), title="digit")
points.axes.set(xticks=[], yticks=[], aspect="equal")
