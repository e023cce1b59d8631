"""The encoder phi(x, k): a trunk that sees no class, and a head with a condition k.

A trunk maps a batch to features of shape (samples, `features`). `ConditionedHead` maps features to one embedding a condition. A
single trunk pass thus serves all C classes, and BatchNorm statistics in the trunk never mix conditions. To add an encoder,
write a trunk with an attribute `features` here, and name it in `build_trunk` and `TRUNKS`.
"""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


def _fitting(stride: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    """Return the stride, at most the size of x in each dimension; there the output has one position with either stride.

    In bfloat16, oneDNN's gradient of the weights reads memory that nothing wrote where a padded convolution has a stride larger
    than the width of its input (its jit_transpose_utils.cpp): kernel columns that meet padding alone get garbage or NaN.
    """
    return tuple(min(step, size) for step, size in zip(stride, x.shape[2:], strict=True))


class _Conv1d(nn.Conv1d):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv1d(x, self.weight, self.bias, _fitting(self.stride, x), self.padding)


class _Conv2d(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(x, self.weight, self.bias, _fitting(self.stride, x), self.padding)


FEATURE_CONVOLUTIONS = (_Conv1d, _Conv2d)
"""Convolutions that map features to features, whose weights the optimiser Muon serves."""


class _Residual(nn.Module):
    """Residual block of two convolutions and a shortcut (He et al. 2016, figure 2), in one or two dimensions."""

    def __init__(self, dimensions: int, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        conv: Any = _Conv1d if dimensions == 1 else _Conv2d
        norm = nn.BatchNorm1d if dimensions == 1 else nn.BatchNorm2d
        self.body = nn.Sequential(
            conv(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            norm(outputs),
            nn.ReLU(inplace=True),
            conv(outputs, outputs, kernel, 1, kernel // 2, bias=False),
            norm(outputs),
        )
        # A 1 x 1 convolution with a stride equals one without on every stride-th position, and is computed so here. With a
        # stride and fewer input channels than a vector of the CPU holds, oneDNN's gradient of the weights writes past its
        # workspace (uxlfoundation/oneDNN#6035): it crashes, hangs or is wrong.
        self.positions: Any = (..., *[slice(None, None, stride)] * dimensions)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, bias=False), norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.body(x) + self.shortcut(x[self.positions]), inplace=True)


class _ResNet(nn.Module):
    """A stem, then residual stages, each twice as wide as the one before; features are means over all positions."""

    def __init__(self, stem: nn.Sequential, dimensions: int, width: int, blocks: list[int], kernel: int) -> None:
        super().__init__()
        self.stem = stem
        layers, self.features = [], width
        for stage, count in enumerate(blocks):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(_Residual(dimensions, self.features, width * 2**stage, kernel, stride))
                self.features = width * 2**stage
        self.stages = nn.Sequential(*layers)
        self.positions = tuple(range(-dimensions, 0))

    def forward(self, x: Tensor) -> Tensor:
        return self.stages(self.stem(x)).mean(self.positions)


class ResNet2d(_ResNet):
    """ResNet-18 for small images: a 3 x 3 stem; with `width` 64, two blocks a stage and no pooling, the CIFAR ResNet-18.

    Input (N, channels, height, width) float, output (N, features). The paper says no more of its encoder than "a lightweight
    ResNet-18" (section IV-B). `pool` halves height and width after the stem, as ResNet-18 does for large images; an image then
    costs a quarter of the work.
    """

    def __init__(self, channels: int, width: int, blocks: list[int], pool: bool = False) -> None:
        stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        if pool:
            stem.append(nn.MaxPool2d(2))
        super().__init__(stem, 2, width, blocks, 3)


class _ConvBlock(nn.Module):
    """Two convolutions of 3 x 3 pixels; a maximum over 2 x 2 pixels follows the first and quarters the work of the second."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            convolution = _Conv2d(channels, outputs, 3, padding=1, bias=False)
            # Outputs begin as copies of the inputs, as far as these go.
            nn.init.dirac_(convolution.weight.data[:channels])
            norm = nn.BatchNorm2d(outputs, momentum=0.4)
            norm.weight.requires_grad_(False)  # It learns a shift and no scale.
            layers += [convolution, norm, nn.GELU()]
        layers.insert(1, nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class ConvNet(nn.Module):
    """Small convolutional trunk without residuals, made to learn small images with little work.

    Input (N, channels, height, width) float, at least 9 x 9 pixels; output (N, features), the largest value of each of the last
    channels over the picture, with mean 0 and variance 1 over the batch.

    After Jordan (2024, "94% on CIFAR-10 in 3.29 seconds on a single GPU", arXiv 2404.00498, sections 2 and 3): a layer of fixed
    filters that whitens patches of 2 x 2 pixels, then three blocks of `width`, 4 `width` and 4 `width` channels with GELU, early
    pooling and a BatchNorm that learns a shift alone. `width` 64 is the one published there.

    `whiten` sets the filters from training images; until then they are zero. They enlarge small differences of neighbouring
    pixels, which bfloat16 rounds away, and therefore work in the precision of the parameters.
    """

    whitening: Tensor

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        patch = channels * 4
        self.register_buffer("whitening", torch.zeros(2 * patch, channels, 2, 2))
        self.blocks = nn.Sequential(
            _ConvBlock(2 * patch, width), _ConvBlock(width, 4 * width), _ConvBlock(4 * width, 4 * width)
        )
        self.features = 4 * width
        # `Encoder` and `Classifier` standardise features, too. A head of one's own may not.
        self.standardise = nn.BatchNorm1d(self.features, affine=False)

    @torch.no_grad()
    def whiten(self, images: Tensor, regularisation: float = 5e-4) -> None:
        """Set the filters to the whitened principal components of the patches of images (N, channels, height, width).

        Each component and its negative are filters, so that no half is lost to GELU. `regularisation` joins the variances, so
        that components without variance are not blown up.
        """
        patches = nn.functional.unfold(images.float(), 2).transpose(1, 2).flatten(0, 1)
        variances, components = torch.linalg.eigh(patches.T @ patches / len(patches))
        filters = (components / (variances + regularisation).sqrt()).T.flip(0).view(-1, *self.whitening.shape[1:])
        self.whitening.copy_(torch.cat([filters, -filters]))

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            whitened = nn.functional.gelu(nn.functional.conv2d(x.to(self.whitening.dtype), self.whitening))
        return self.standardise(self.blocks(whitened).amax((-2, -1)).to(self.whitening.dtype))


class ResNet1d(_ResNet):
    """Residual network over time for EEG epochs: a wide strided stem (half a second at 100 Hz), then residual stages.

    Input (N, channels, samples) float, output (N, features).
    """

    def __init__(self, channels: int, width: int, blocks: list[int]) -> None:
        stem = nn.Sequential(
            nn.Conv1d(channels, width, 49, 6, 24, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool1d(4),
        )
        super().__init__(stem, 1, width, blocks, 7)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy values from the host to a device; to a GPU from pinned memory, so that the host does not wait."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


class Hourly(NamedTuple):
    """Recordings of unequal length: `values` (hours, inputs), one recording after the other; `lengths` in hours, on the CPU."""

    values: Tensor
    lengths: Tensor


# Hours that the recurrent network processes at a time.
_HOURS_AT_ONCE = 16


class CausalGRU(nn.Module):
    """Gated recurrent network over the hours of a stay; the state at hour t depends on hours up to t only.

    Input `Hourly`, output (hours, features) in the same order.

    The network processes a few hours at a time, the longest recordings first, and drops recordings that have ended. The states
    equal those of one pass over all hours. A packed sequence drops them too, but its gradient on the CPU takes four to six
    times as long for stays of intensive care.
    """

    def __init__(self, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(inputs, width, layers, batch_first=True)
        self.features = width

    def forward(self, recordings: Hourly) -> Tensor:
        values = self.dropout(recordings.values)
        lengths, order = recordings.lengths.sort(descending=True, stable=True)
        # Row of each recording's first hour.
        first = (recordings.lengths.cumsum(0) - recordings.lengths)[order].unsqueeze(1)
        hidden, parts, places = None, [], []
        for start in range(0, int(lengths[0]), _HOURS_AT_ONCE):
            running = int((lengths > start).sum())
            last = lengths[:running].unsqueeze(1) - 1
            hours = torch.arange(start, min(start + _HOURS_AT_ONCE, int(lengths[0])))
            rows = first[:running] + torch.minimum(hours, last)
            if hidden is not None:
                hidden = hidden[:, :running].contiguous()
            now = values[to_device(rows, values.device)]
            with torch.autocast("cuda", enabled=False):  # on a GPU it would take float16, whatever type is asked for
                states, hidden = self.gru(now.float() if now.is_cuda else now, hidden)
            valid = (hours <= last).flatten().nonzero()[:, 0]
            parts.append(states.flatten(0, 1)[to_device(valid, values.device)])
            places.append(rows.flatten()[valid])
        return torch.cat(parts)[to_device(torch.cat(places).argsort(), values.device)]


class MLP(nn.Module):
    """Fully connected trunk for vectors: input (N, inputs), output (N, features)."""

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        super().__init__()
        steps: list[nn.Module] = []
        for layer in range(layers):
            steps += [nn.Linear(width if layer else inputs, width, dtype=torch.float32), nn.ReLU()]
        self.body = nn.Sequential(*steps)
        self.features = width

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class ConditionedHead(nn.Module):
    """Head with one affine map a condition k, z_k = W_k h + b_k.

    Features (N, F) to embeddings (K, N, L), or (1, N, L) for a single condition.
    """

    def __init__(self, features: int, conditions: int, size: int) -> None:
        super().__init__()
        bound = features**-0.5
        self.weight = nn.Parameter(torch.empty(conditions, features, size, dtype=torch.float32).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(conditions, 1, size))

    def forward(self, features: Tensor, condition: int | None = None) -> Tensor:
        rows = slice(None) if condition is None else slice(condition, condition + 1)
        return torch.baddbmm(self.bias[rows], features.expand(len(self.weight[rows]), -1, -1), self.weight[rows])


class Encoder(nn.Module):
    """Encoder phi: a trunk, standardisation of its features, and a head with conditions.

    Features after a ReLU and a mean are all positive, so embeddings would start as a narrow bundle with similarities near 1.
    After standardisation (BatchNorm without parameters) similarities start near 0, and training is much faster.
    """

    def __init__(self, trunk: nn.Module, head: ConditionedHead) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head
        self.standardise = nn.BatchNorm1d(head.weight.shape[1], affine=False)

    def forward(self, x: Any, condition: int | None = None) -> Tensor:
        """Return embeddings (K, samples, L) of a batch under all conditions, or (1, samples, L) under one; at least float32."""
        features = self.features(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.head(features, condition)

    def features(self, x: Any) -> Tensor:
        """Return what the head takes, (samples, F).

        Standardisation and head run outside autocast, so that embeddings and kernels keep full precision.
        """
        features = self.trunk(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.standardise(features.to(self.head.weight.dtype))


class Classifier(nn.Module):
    """Trunk, standardisation of its features as in `Encoder`, and a linear layer of C logits: the cross-entropy baseline."""

    def __init__(self, trunk: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self.trunk, self.logits = trunk, nn.Linear(features, classes)
        self.standardise = nn.BatchNorm1d(features, affine=False)

    def forward(self, x: Any) -> Tensor:
        features = self.trunk(x)
        with torch.autocast(features.device.type, enabled=False):
            return self.logits(self.standardise(features.to(self.logits.weight.dtype)))


TRUNKS = {
    "images": {"resnet2d": 2, "convnet": 9}, "signals": {"resnet1d": 19},
    "features": {"mlp": 1}, "recordings": {"gru": 1},
}  # fmt: skip
"""The names of trunks by the kind of data that they take, each with the least pixels a side, or samples, that it needs."""


def build_trunk(settings: Mapping[str, Any], inputs: int) -> nn.Module:
    """Build the trunk that the block `encoder` of config.yaml names, for `inputs` channels or variables.

    Args:
        settings: `trunk` (`resnet2d`, `convnet`, `resnet1d`, `mlp`, `gru`), `width`, `blocks` (residual), `pool`
            (resnet2d) or `layers` (mlp, gru), and `dropout` (gru).

    Raises:
        ValueError: no trunk has this name.
    """
    kind, width = settings["trunk"], settings["width"]
    if kind == "resnet2d":
        return ResNet2d(inputs, width, settings["blocks"], settings["pool"])
    if kind == "convnet":
        return ConvNet(inputs, width)
    if kind == "resnet1d":
        return ResNet1d(inputs, width, settings["blocks"])
    if kind == "gru":
        return CausalGRU(inputs, width, settings["layers"], settings["dropout"])
    if kind == "mlp":
        return MLP(inputs, width, settings["layers"])
    raise ValueError(f"encoder.trunk is {kind!r}, expected resnet2d, convnet, resnet1d, mlp or gru")


def build_encoder(
    settings: Mapping[str, Any], inputs: int, conditions: int, seed: int, own: nn.Module | None = None
) -> Encoder:
    """Build an untrained encoder, initialised from the seed; with one condition its head is a projection of all classes.

    A trunk of one's `own` is copied, and takes the place of the one that the settings name.
    """
    torch.default_generator.manual_seed(seed)
    trunk = build_trunk(settings["encoder"], inputs) if own is None else copy.deepcopy(own)
    return Encoder(trunk, ConditionedHead(int(trunk.features), conditions, settings["embedding_size"]))  # type: ignore[arg-type]


def build_classifier(settings: Mapping[str, Any], inputs: int, classes: int, seed: int) -> Classifier:
    """Build an untrained trunk with logits, initialised from the seed."""
    torch.default_generator.manual_seed(seed)
    trunk = build_trunk(settings["encoder"], inputs)
    return Classifier(trunk, int(trunk.features), classes)  # type: ignore[arg-type]


def move(module: nn.Module, device: torch.device) -> None:
    """Move a module to a device, in the memory layout that convolutions prefer."""
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
