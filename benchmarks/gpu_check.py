"""Check the method on a GPU: `python benchmarks/gpu_check.py`, as `make gpu-check` does.

It needs this source tree, torch, NumPy, SciPy, scikit-learn, pandas, PyYAML and safetensors, and no installation. `--help`
names the options; benchmarks/README.md says what the parts are.
"""

import argparse
import logging
import os
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# Deterministic products of matrices need this before CUDA begins.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(REPOSITORY / "src"))
try:
    import torch

    from clai.errors import InputError
    from replication.benchmark.gpu_check import run_parts
    from replication.benchmark.gpu_parts import Check
    from replication.runs.settings import MINIATURE, default_settings, load_settings, merge, read_yaml
except ModuleNotFoundError as missing:
    sys.exit(
        f"gpu-check: found no module {missing.name}, expected torch, NumPy, SciPy, scikit-learn, pandas, PyYAML and safetensors; "
        "install it, or run `make environment`"
    )

OF_MINIATURE = ("threads", "embedding_size", "encoder", "training", "inference", "studies", "variants")
PARTS = ["exactness", "repetition", "synchronisation", "rate", "accuracy"]


def settings(configfile: Path | None, tiny: bool) -> dict:
    """Return the settings; the sizes of the exactness tests, and with `tiny` of all, are those of the miniature."""
    own = {} if configfile is None else read_yaml(configfile)
    try:
        whole = load_settings(REPOSITORY, own)
    except ModuleNotFoundError as missing:
        logging.warning("settings are not checked: found no module %s", missing.name)
        whole = merge(default_settings(REPOSITORY), own)
    small = read_yaml(REPOSITORY / MINIATURE)
    whole = merge(whole, {"benchmark": small["benchmark"]})
    return merge(whole, {key: small[key] for key in OF_MINIATURE}) if tiny else whole


def main() -> None:
    """Run the parts and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small networks, to test this command on a CPU")
    parser.add_argument(
        "--parts", nargs="+", default=PARTS, help="names or beginnings; resnet18 is run only if asked for"
    )
    parser.add_argument("--configfile", type=Path, help="your settings, such as datasets.cifar10.path")
    parser.add_argument(
        "--seconds", type=float, default=540, help="no part begins, and no training goes on, after these"
    )
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results" / "gpu-check")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stdout)
    if asked.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu-check: found no CUDA device, expected one; `--device cpu --tiny` tries the command on a CPU")
    deadline = time.monotonic() + asked.seconds
    try:
        check = Check(
            REPOSITORY, settings(asked.configfile, asked.tiny), torch.device(asked.device), asked.out, deadline,
            size=256 if asked.tiny else 8192,
        )  # fmt: skip
        report = run_parts(check, asked.parts)
    except InputError as error:
        sys.exit(f"gpu-check: {error}")
    for part in report:
        print(f"{part['part']}: {part['status']}")
        for finding in part["findings"]:
            verdict = {True: "holds", False: "DOES NOT HOLD", None: ""}[finding["holds"]]
            print(f"  {finding['quantity']}: {finding['value']}  {verdict}")
    print(f"report: {asked.out / 'report.csv'}")
    sys.exit(any(part["status"].startswith("failed") for part in report))


if __name__ == "__main__":
    main()
