"""
An encoder of one's own: a ResNet-18 of torchvision
===================================================

``AlignmentLoss`` trains any network that gives embeddings. Here the head of a ResNet-18 is replaced by a linear layer of sixteen
dimensions, which are the embedding.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn
from torchvision.models import resnet18

from clailearn import AlignmentLoss, vote
from clailearn.kernels import MahalanobisGaussian

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True, n_class=3)
X = torch.from_numpy(images).float().view(-1, 1, 8, 8).div(16).repeat_interleave(2, 2).repeat_interleave(2, 3)
X, y = X.expand(-1, 3, -1, -1), torch.from_numpy(labels)
train, test = slice(0, 300), slice(300, None)

# %%
# ``weights=None`` starts at random. With pretrained weights the first layers need little training.
encoder = resnet18(weights=None)
encoder.fc = nn.Linear(encoder.fc.in_features, 16)

# %%
# The kernel has weights of its own: the metric. ``simplex`` asks samples of different classes for the similarity -1/(C - 1).
loss = AlignmentLoss(MahalanobisGaussian(size=16, metric="full"), target="simplex", classes=3)
optimiser = torch.optim.AdamW([*encoder.parameters(), *loss.parameters()], lr=2e-3)
for epoch in range(2):
    encoder.train()
    for items in torch.randperm(300).split(50):
        optimiser.zero_grad()
        value = loss(encoder(X[train][items]), y[train][items])
        value.backward()
        optimiser.step()
    print(f"epoch {epoch + 1}: loss {value.item():.3f}")

# %%
# Test samples are classified by the vote of the training samples.
encoder.eval()
with torch.no_grad():
    z = torch.cat([encoder(part) for part in X.split(100)])
    f = vote(loss.kernel, z[test], z[train], y[train])
accuracy = np.mean((f.argmax(1) == y[test]).numpy())
print(f"accuracy {accuracy:.3f}")

# %%
# Embeddings of the test digits in the plane of their two first principal components.
shown = PCA(2, random_state=0).fit_transform(z[test])
points = plt.subplots(layout="constrained")[1].scatter(*shown.T, c=y[test], cmap="tab10", s=10)
points.axes.legend(*points.legend_elements(), title="digit")
points.axes.set(xticks=[], yticks=[], aspect="equal")
