"""`python -m tests.engines.report`: every family in PyTorch, written to the second half of docs/engines.md.

`--real` also computes the public models of `make real`, in ten minutes; otherwise their rows stay as they are.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from backends.apple import library as mlx_library
from backends.pytorch import library
from tests.engines.torch_folder import PROJECT, torch_folder

DOCUMENT = PROJECT / "docs" / "engines.md"
BEGIN = "## PyTorch\n"
HEAD = (
    BEGIN
    + """
A stage can also be computed by PyTorch {version} (`backends/pytorch`), from the same files. `make engines` installs it
for the tests, into an environment of its own. The rest of this page is written by `python -m tests.engines.report`.

Weights stay packed on a graphics card and are unpacked for each product; on a processor they are unpacked once, into
float32, so a stage there takes 4 bytes a weight. F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K and MXFP4
are read, with the same bits as in llama.cpp. Keys and values are kept in f16. A file with a tensor that a family does
not know is refused, and so are pictures, a context in 8 bits, and a stage on several devices.

**All figures are from a processor. Nothing has run on a graphics card yet**, and there are no kernels that multiply
packed weights there, so a card would be slower than it could be. On one busy core, PyTorch decodes SmolLM2 in 4.3 times
the time of llama.cpp (60 and 14 ms a token), and a stage takes 0.3 ms a step besides its layers.

### Families

A tiny random model of each family, with its weights, keys and values in float32 in both engines; two answers at once.

- *whole*: the largest difference between PyTorch and llama.cpp, relative to the largest logit.
- *mixed*: the same for pipelines in which both engines take turns, in both orders.
- *cut*: the largest difference between PyTorch cut, at so many places, and PyTorch whole.
- *tokens*: whether all greedy tokens are llama.cpp's, also in the mixed pipelines.

llama.cpp computes GELU on processors from a table of halves, which the comparison does too in the families of Gemma;
with exact values they differ by up to 2e-03. The cuts of glm4 hold rows in another order, so sums are in another order.

| model | architecture | device | whole | mixed | cut | cuts | tokens |
|---|---|---|---|---|---|---|---|
"""
)
REAL = """
### Public models

The likeness of the next token on fixed texts: the mean Kullback-Leibler divergence, and how often the likeliest token
is the same. *exact* compares PyTorch with llama.cpp in float32 on the same weights, *working* with llama.cpp as it is
used, and *its rounding* llama.cpp in float32 with llama.cpp as it is used: on processors it rounds what it multiplies
with packed weights to 8 bits, and PyTorch does not.

| model | positions | exact | working | its rounding |
|---|---|---|---|---|
"""


def _families() -> str:
    from backends.pytorch.families.registry import FAMILIES
    from tests.engines.parity import gelu_of_halves, parity
    from tests.families import proof
    from tests.families.fixtures import families

    rows = []
    for name, family in families().items():
        if family.architecture not in FAMILIES:
            continue
        with tempfile.TemporaryDirectory() as folder, gelu_of_halves():
            result = parity(proof.home(Path(folder)), family.path, Path(folder), name)
        tokens = "equal" if result.tokens_equal else "**differ**"
        figures = " | ".join(f"{figure:.1e}" for figure in (result.whole, result.mixed, result.cut))
        rows.append(f"| {name} | {result.architecture} | processor | {figures} | {result.n_cuts} | {tokens} |\n")
        print(rows[-1], end="", flush=True)
    return "".join(rows)


def _real() -> str:
    from scripts.real_models import MODELS, folder
    from tests.engines.real_parity import Likeness, real_parity

    def shown(likeness: Likeness) -> str:
        return f"{likeness.mean_kl:.1e}, {likeness.top:.1%}"

    rows = []
    for model in MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            result = real_parity(folder() / model.file, Path(temporary))
        cells = (shown(result.exact), shown(result.working), shown(result.rounding))
        rows.append(f"| {model.file} | {result.n_positions} | {' | '.join(cells)} |\n")
        print(rows[-1], end="", flush=True)
    return "".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engines.report", description=__doc__)
    parser.add_argument("--real", action="store_true", help="also the public models")
    args = parser.parse_args()
    folder = torch_folder()
    if folder is None:
        print("PyTorch is not here: `make engines` installs it")
        return 1
    library.load(str(folder))
    mlx_library.load(str(folder))
    from torch import __version__

    text = DOCUMENT.read_text("utf-8")
    before, _, old = text.partition(BEGIN)
    known = re.findall(r"^\| \S+\.gguf .*\n", old, re.MULTILINE)
    page = HEAD.format(version=__version__.partition("+")[0]) + _families() + REAL
    page += _real() if args.real else "".join(known)
    DOCUMENT.write_text(before.rstrip() + "\n\n" + page, "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
