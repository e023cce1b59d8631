"""Compare votes of sampled references with the vote of all, on random embeddings."""

from collections.abc import Sequence

import torch
from torch import Tensor

from clai.inference import decide, parzen_means, predict_labels, sample_references, standard_error
from clai.kernels import Kernel

RARE = 0.02
"""The share of a rare class."""


def compare_sampled_votes(
    kernel: Kernel,
    size: int,
    classes: int,
    test: int,
    references: int,
    numbers: Sequence[int],
    seeds: int,
    device: torch.device,
) -> list[tuple[str, str, str, int, str, float]]:
    """Return rows of `benchmark.csv`: for classes of equal shares and for a rare one, by decision rule.

    The quantities: `error`, root mean square difference from the vote of all, over test samples and conditions; `stated`, root
    mean square of the standard error that the vote states; `changed`, share of test samples that get another class.
    """
    rows: list[tuple[str, str, str, int, str, float]] = []
    for shares in ([1 / classes] * classes, [1 - RARE, RARE]):
        z, z_reference, labels = random_embeddings(test, references, shares, size, device)
        whole = parzen_means(kernel, z, z_reference, labels)
        for number in numbers:
            setting = f"C={len(shares)};share={shares[-1]:g};R={references};n={number}"
            for seed in range(seeds):
                items, population = sample_references(labels.cpu(), number, seed)
                drawn = items.to(device)
                means = parzen_means(kernel, z, z_reference[:, drawn], labels[drawn], population)
                for rule in ("printed", "balanced", "parzen"):
                    f, f_all = decide(means, rule), decide(whole, rule)
                    quantities = {
                        "error": (f - f_all).square().mean().sqrt(),
                        "stated": standard_error(means, rule).square().mean().sqrt(),
                        "changed": (predict_labels(f) != predict_labels(f_all)).double().mean(),
                    }
                    rows += [("sampling", rule, setting, seed, name, float(v)) for name, v in quantities.items()]
    return rows


def random_embeddings(
    test: int, references: int, shares: Sequence[float], size: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw test (K, P, L) and reference (K, R, L) embeddings, class k shifted under condition k, and labels (R,)."""
    generator = torch.Generator().manual_seed(0)
    conditions = torch.arange(len(shares))[1 if len(shares) == 2 else 0 :]

    def draw(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
        z = torch.randn(len(conditions), count, size, generator=generator)
        z[:, :, 0] += 3 * (labels == conditions[:, None])
        return z.to(device), labels.to(device)

    (z, _), (z_reference, labels) = draw(test), draw(references)
    return z, z_reference, labels
