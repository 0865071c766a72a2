"""Averages the weights of several trainings, which refuses strange questions better than each of them alone does."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def blend(paths: Sequence[Path], shares: Sequence[float], out: Path) -> None:
    """Write the weighted mean of weights that have one ancestor. The shares need not add up to one."""
    mean: dict[str, np.ndarray] = {}
    for path, share in zip(paths, shares, strict=True):
        with np.load(path) as saved:
            if mean and mean.keys() != set(saved.files):
                raise ValueError(f"{path} has other weights than {paths[0]}")
            for name in saved.files:
                mean[name] = mean.get(name, np.float32(0)) + np.float32(share / sum(shares)) * saved[name]
    part = out.with_suffix(".part.npz")
    np.savez(part, **mean)  # type: ignore[arg-type]
    part.replace(out)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/guide/weights.npz"))
    parser.add_argument("--shares", type=float, nargs="+", help="how much of each; alike by default")
    parser.add_argument("weights", type=Path, nargs="+")
    options = parser.parse_args()
    blend(options.weights, options.shares or [1.0] * len(options.weights), options.out)


if __name__ == "__main__":
    main()
