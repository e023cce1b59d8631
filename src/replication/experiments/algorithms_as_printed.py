"""Algorithms 1 to 4 as the paper prints them, plain and slow.

Tests hold the fast code equal to them, and the benchmark measures Algorithm 3. They use nothing of `clailearn`.
`phi` embeds a batch, `theta` is the list of trained parameters, `shuffle(N)` returns a permutation of 0 .. N - 1. Labels are
+1 and -1 (Algorithms 1 and 2) or 0 .. C - 1 (Algorithms 3 and 4).
"""

from collections.abc import Callable

import torch
from torch import Tensor

Similarity = Callable[[Tensor, Tensor], Tensor]


def cosine(z_t: Tensor, z_r: Tensor) -> Tensor:
    """Return `S = Z_t Z_r' / (|Z_t| |Z_r|)`, normalised row by row (equation 8)."""
    return (z_t @ z_r.T) / (z_t.norm(dim=1)[:, None] * z_r.norm(dim=1)[None, :])


def mahalanobis(m: Tensor) -> Similarity:
    """Return the similarity 2 exp(-(z_i - z_j)' M (z_i - z_j)) - 1 (equation 15)."""

    def similarity(z_t: Tensor, z_r: Tensor) -> Tensor:
        difference = z_t[:, None, :] - z_r[None, :, :]
        return 2 * torch.exp(-torch.einsum("ijk,kl,ijl->ij", difference, m, difference)) - 1

    return similarity


def target_product(y_t: Tensor, y_r: Tensor) -> Tensor:
    """Return T = y_t y_r' (Algorithms 1 and 3)."""
    return torch.outer(y_t, y_r)


def target_zero(y_t: Tensor, y_r: Tensor) -> Tensor:
    """Return +1 where both labels are +1, 0 where both are -1, -1 otherwise (section III-D1)."""
    t = y_t.new_empty(len(y_t), len(y_r))
    for i, a in enumerate(y_t):
        for j, b in enumerate(y_r):
            t[i, j] = 1 if a == b == 1 else 0 if a == b == -1 else -1
    return t


def learn_binary(
    phi: Callable[[Tensor], Tensor],
    theta: list[Tensor],
    similarity: Callable[[], Similarity],
    target: Similarity,
    x: Tensor,
    y: Tensor,
    batch_size: int,
    epochs: int,
    eta: float,
    shuffle: Callable[[int], Tensor],
) -> None:
    """Run Algorithm 1, collaborative learning, binary; as printed, `target` is `target_product`.

    `similarity()` returns K with its present parameters.
    """
    optimiser = torch.optim.SGD(theta, eta)
    for _ in range(epochs):
        order = shuffle(len(x))
        batches = partition(x[order], y[order], batch_size)
        m = len(batches)
        for t in range(m - 1):
            optimiser.zero_grad()
            x_t, y_t = batches[t]
            z_t = phi(x_t)
            for r in range(t + 1, m):
                x_r, y_r = batches[r]
                z_r = phi(x_r)
                s = similarity()(z_t, z_r)
                loss = (s - target(y_t, y_r)).square().sum() / batch_size**2
                loss.backward(retain_graph=True)
            optimiser.step()


def learn_multiclass(
    phi: Callable[[Tensor, int], Tensor],
    theta: list[Tensor],
    similarity: Callable[[], Similarity],
    target: Similarity,
    x: Tensor,
    y: Tensor,
    classes: int,
    batch_size: int,
    epochs: int,
    eta: float,
    shuffle: Callable[[int], Tensor],
) -> None:
    """Run Algorithm 3, collaborative learning, multiclass: an epoch of Algorithm 1 for one class after another."""
    for _ in range(epochs):
        for k in range(classes):
            signs = relabel(y, k, x.dtype)
            learn_binary(under(phi, k), theta, similarity, target, x, signs, batch_size, 1, eta, shuffle)


def infer_binary(
    phi: Callable[[Tensor], Tensor], similarity: Similarity, x: Tensor, x_r: Tensor, y_r: Tensor, batch_size: int
) -> Tensor:
    """Run Algorithm 2, collaborative inference, binary; return f (P,), whose sign is the label."""
    z = phi(x)
    batches = partition(x_r, y_r, batch_size)
    # S joined once: S <- [S, S_batch] for each batch, as printed, would copy it as often.
    s = torch.cat([similarity(z, phi(x_batch)) for x_batch, _ in batches], dim=1)
    y = torch.cat([y_batch for _, y_batch in batches])
    return s @ y / (y @ y)


def infer_multiclass(
    phi: Callable[[Tensor, int], Tensor],
    similarity: Similarity,
    x: Tensor,
    x_r: Tensor,
    y_r: Tensor,
    classes: int,
    batch_size: int,
) -> Tensor:
    """Run Algorithm 4, collaborative inference, multiclass; return f (P, C) before the softmax, largest at the label."""
    columns = [
        infer_binary(under(phi, k), similarity, x, x_r, relabel(y_r, k, x.dtype), batch_size) for k in range(classes)
    ]
    return torch.stack(columns, dim=1)


def under(phi: Callable[[Tensor, int], Tensor], k: int) -> Callable[[Tensor], Tensor]:
    """Return phi(., k)."""
    return lambda batch: phi(batch, k)


def partition(x: Tensor, y: Tensor, batch_size: int) -> list[tuple[Tensor, Tensor]]:
    """Return M = floor(N / B) batches; the remainder is left out."""
    m = len(x) // batch_size
    return [(x[i * batch_size : (i + 1) * batch_size], y[i * batch_size : (i + 1) * batch_size]) for i in range(m)]


def relabel(y: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """Return y^k: +1 where y = k, -1 otherwise (section III-D1)."""
    return torch.where(y == k, 1, -1).to(dtype)
