"""Write the tiles of `make demo`, the first test tile of each of five classes, from pathmnist.npz, the argument."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

TILES = {"adipose": 0, "lymphocytes": 3, "mucosa": 6, "stroma": 7, "tumour": 8}
data, folder = np.load(sys.argv[1]), Path("workflow/demo")
for name, label in TILES.items():
    first = int(np.flatnonzero(data["test_labels"][:, 0] == label)[0])
    Image.fromarray(data["test_images"][first]).save(folder / f"{name}_{first}.png")
