"""The precision follows the hardware, and one that the hardware emulates is warned of."""

import logging
import os
import subprocess
import sys

import pytest
import torch

from replication.models import run
from replication.models.run import choose_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("native", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_bfloat16_only_where_it_is_native_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, native: bool, precision: str
) -> None:
    monkeypatch.setattr(run, "has_native_bfloat16", lambda device: native)
    with caplog.at_level(logging.INFO, logger="replication"):
        assert choose_precision("auto", CPU) == precision
    assert f"training.precision auto: {precision}, because this CPU" in caplog.text


def test_a_cpu_that_may_use_avx2_alone_computes_in_float32() -> None:
    code = "import torch; from replication.models.run import *; print(choose_precision('auto', torch.device('cpu')))"
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "float32"
