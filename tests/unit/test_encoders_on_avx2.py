"""Training of residual encoders where gradients of oneDNN are wrong: it neither crashes nor goes astray.

oneDNN's gradient of the weights of a 1 x 1 convolution with a stride is wrong, or ends the process, where the input has fewer
channels than a vector register holds (uxlfoundation/oneDNN#6035), with AVX2 alone too. In bfloat16 that of a padded
convolution is wrong where the stride is larger than the width of the input.
"""

import pytest

from support.repository import run_script

TRAIN = """
import copy, sys
import torch
from clailearn.encoders import ResNet1d, ResNet2d
from replication.runs.run import use_threads

use_threads(1)
torch.manual_seed(0)
for width in (4, 6, 8, 12):
    for trunk, x in [
        (ResNet2d(3, width, [1, 1, 1]), torch.randn(16, 3, 32, 32)),
        (ResNet2d(3, width, [1, 1, 1], pool=True), torch.randn(16, 3, 28, 28)),
        (ResNet1d(2, width, [1, 1]), torch.randn(8, 2, 3000)),
    ]:
        exact = copy.deepcopy(trunk).double()
        if x.ndim == 4:
            trunk, x = trunk.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        weights = torch.randn(len(x), trunk.features)
        for _ in range(2):
            trunk.zero_grad()
            exact.zero_grad()
            (trunk(x) * weights).sum().backward()
            (exact(x.double()) * weights).sum().backward()
            for (name, p), q in zip(trunk.named_parameters(), exact.parameters()):
                if p.ndim < 3:  # sums that nearly cancel: a sign that rounding turns at one ReLU shows in them
                    continue
                apart = (p.grad.double() - q.grad).norm() / q.grad.norm().clamp_min(1e-3)
                assert apart < 0.05, f"{type(trunk).__name__} of width {width}, {name}: relative error {apart:.2g}"
"""


@pytest.mark.parametrize("instructions", ["AVX2", "DEFAULT"])
def test_gradients_of_narrow_encoders_are_those_in_double_precision(instructions: str) -> None:
    run_script(TRAIN, ONEDNN_MAX_CPU_ISA=instructions)


SMALLER_THAN_A_STRIDE = """
import copy, torch
from clailearn.encoders import ResNet1d, ResNet2d

for trunk, x in [
    (ResNet2d(3, 16, [1, 1, 1, 1]), torch.ones(32, 3, 4, 4)),
    (ResNet2d(1, 16, [1, 1, 1, 1], pool=True), torch.ones(32, 1, 9, 9)),
    (ResNet1d(2, 16, [1, 1, 1, 1]), torch.ones(32, 2, 64)),
]:
    torch.nn.init.normal_(x, generator=torch.Generator().manual_seed(0))
    exact = copy.deepcopy(trunk).double()
    with torch.autocast("cpu", torch.bfloat16):
        trunk(x).float().square().sum().backward()
    exact(x.double()).square().sum().backward()
    for (name, p), q in zip(trunk.named_parameters(), exact.parameters()):
        most = 10 * q.grad.norm().item() + 10
        assert p.grad.norm() < most, f"{type(trunk).__name__}, {name}: norm {p.grad.norm():.2g}, expected below {most:.2g}"
"""


def test_gradients_read_no_memory_that_nothing_wrote_where_a_stride_is_larger_than_a_picture() -> None:
    # The C library then fills memory that it hands out with the byte 0x5a, which is 1.5e16 in bfloat16.
    run_script(SMALLER_THAN_A_STRIDE, MALLOC_PERTURB_="165")
