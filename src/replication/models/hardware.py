"""What the machine computes with: the device of a run, and the precision of its trunk."""

import logging

import torch

from clai.trainer import Precision

logger = logging.getLogger("replication")


def choose_device(name: str) -> torch.device:
    """Return the device that the setting `device` names.

    `auto` is CUDA if there is one, else the CPU. `cuda` without one falls back to the CPU with a warning.
    """
    if name != "cpu" and torch.cuda.is_available():
        return torch.device("cuda")
    if name == "cuda":
        logger.warning("device is cuda, but none is visible to this job: continuing on the CPU")
    return torch.device("cpu")


def has_native_bfloat16(device: torch.device) -> bool:
    """Return whether the device computes in bfloat16 itself.

    On the CPU oneDNN must use it (ONEDNN_MAX_CPU_ISA may forbid that), and the processor must have AVX-512 BF16 or AMX. Others
    emulate it: on one with AVX2 alone a trunk then took sixteen times as long as in float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    processor = torch.cpu.get_capabilities()
    native = any(processor.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
    return native and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision of the trunk that the setting `training.precision` names, and log why.

    `auto` is bfloat16 where the device computes it natively, else float32. A fixed bfloat16 that the device has to emulate stays,
    with a warning.
    """
    native = has_native_bfloat16(device)
    if name == "auto":
        precision: Precision = "bfloat16" if native else "float32"
        reason = "computes it natively" if native else "has no native bfloat16"
        logger.info("training.precision auto: %s, because this %s %s", precision, device.type.upper(), reason)
        return precision
    if name == "bfloat16" and not native:
        logger.warning(
            "training.precision is bfloat16, which this %s emulates, many times as slow as float32. Set it to auto or float32",
            device.type.upper(),
        )
    return name  # type: ignore[return-value]  # the schema allows no other names
