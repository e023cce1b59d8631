"""
A folder of pictures
====================

Pictures in one folder a class, read with Pillow and classified by a small convolutional trunk.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image, ImageDraw
from sklearn.model_selection import train_test_split
from torch import nn

from clailearn import CLaIClassifier

# %%
# Draw pictures of circles, squares and triangles into folders. Yours exist already.
generator = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
for shape, corners in (("circle", 40), ("square", 4), ("triangle", 3)):
    (folder / shape).mkdir()
    for number in range(120):
        picture = Image.fromarray(generator.integers(0, 90, (20, 20, 3), dtype=np.uint8))
        x, y = generator.uniform(7, 13, 2)
        colour = tuple(generator.integers(120, 256, 3).tolist())
        circle = (x, y, generator.uniform(4, 7))
        ImageDraw.Draw(picture).regular_polygon(circle, corners, generator.uniform(0, 90), fill=colour)
        picture.save(folder / shape / f"{number}.png")

# %%
# Read them: images of bytes (N, channels, height, width), and the names of their folders. The estimator turns a batch at a time
# into numbers, so that the pictures stay bytes.
files = sorted(folder.glob("*/*.png"))
X = np.stack([np.asarray(Image.open(file).convert("RGB")) for file in files]).transpose(0, 3, 1, 2)
y = np.array([file.parent.name for file in files])
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)


# %%
# A trunk is a module that maps a batch to vectors and says how long they are.
class Trunk(nn.Module):
    features = 32

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.AdaptiveMaxPool2d(1), nn.Flatten()),
        )

    def forward(self, x):
        return self.layers(x / 255)


torch.manual_seed(0)
model = CLaIClassifier(trunk=Trunk(), epochs=25, batch_size=32, precision="float32", calibration=None, random_state=0)
accuracy = model.fit(X_train, y_train).score(X_test, y_test)
print(f"accuracy {accuracy:.3f}")

# %%
# The pictures that speak for and against the labels of three test pictures.
figure, axes = plt.subplots(3, 7, figsize=(8, 5), layout="constrained")
for row, picture, sample in zip(axes, X_test[:3].transpose(0, 2, 3, 1), model.votes(X_test[:3], k=3), strict=True):
    row[0].imshow(picture)
    row[0].set_title(f"{sample.label}?")
    for ax, vote in zip(row[1:], [*sample.support, *sample.opposition], strict=True):
        ax.imshow(X_train[vote.item].transpose(1, 2, 0))
        colour = "tab:blue" if vote.label == sample.label else "tab:red"
        ax.set_title(f"{vote.label}\n{vote.vote:+.4f}", fontsize=9, color=colour)
for ax in axes.flat:
    ax.set_axis_off()
