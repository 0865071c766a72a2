"""`python -m tests.cards.report`: every family on the device, written to docs/devices.md.

Each family is computed in a process of its own, so that a driver that crashes is a finding and not the end. Findings
are kept in build/cards/families.jsonl. `--resume` computes only the families that are missing there and on the page.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from threading import Lock
from typing import Any

from tests.cards.device import PROJECT, CaseFailed, in_a_process, library
from tests.families.fixtures import families

DOCUMENT = PROJECT / "docs" / "devices.md"
KEPT = PROJECT / "build" / "cards" / "families.jsonl"
WITHIN_S = 900  # for one family: its first steps compile shaders
CASE = "tests.cards.family_case"
NO_FUSION = {"GGML_VK_DISABLE_FUSION": "1"}
HEAD = """# Model families on a device

`python -m tests.cards.report` writes this page. A tiny random model of each family is computed on Mesa's software
Vulkan device by the stages that workers use, in steps of at most 8 rows, with two answers at once: prompts longer than
any sliding window of these models, one of them partly beside the other's answer, then {decoded} greedy tokens each.
The whole model on the processor chooses the tokens. The others compute the same steps with the same tokens.

- *cut*: the largest difference between a model cut into two or three stages on the device and the whole model there.
- *device*: the largest difference between the whole model on the device and the processor.
- *mixed*: the same for pipelines with one stage on the device and one on the processor.

Differences are relative to the largest logit. *tokens*: how many of the likeliest tokens are the processor's, in the
whole model and in the mixed pipelines. Where one differs, the note says how far the processor's token was ahead of it.

A cut separates operations that the device otherwise computes as one, which rounds differently by about 1e-07: without
fused operations (`GGML_VK_DISABLE_FUSION=1`), the cuts of llama-tied are exact. Some families differ more, also without
fused operations; in gemma and gemma2 the cut repeats a scaling ([families.md](families.md)), and why glm4 differs was
not found. A model whose operations the back end lacks is refused with the name of a tensor: Vulkan's state-space scan
is made for states of 128 and 256 values, and these tiny models have smaller ones. A real graphics card rounds in other
places; the pack's self-test computes the known answer on it.

In lfm2-moe, the difference jumps at one position from 6e-04 to 2e-01 and fades over the next: it looks like a near tie
between two experts that rounding decides otherwise, which was not proved.

Other differences above 1e-1 occur where rounding may decide a choice: glm4-moe, ernie4-5-moe and hy-v3 choose experts,
and deepseek-v32 and glm-moe-dsa choose the positions that their attention reads. In these two, single positions differ
completely, with a root mean square difference of up to 1.3 of the spread of their logits, while those beside them
mostly differ by 1e-3 to 1e-2. That these choices are the cause was not proved. The cuts of these five differ by 1.2e-4
at most.

The Guide in three stages, two of them on the device, in confined workers, eight answers at once (`python -m
tests.cards.real_case guide`): 199 of 200 greedy answers are the processor's, token for token.

SmolLM2 135M (Q4_1) in three stages, two of them on the device, over 200 positions of English text (`python -m
tests.cards.real_case smollm2`): the mean Kullback–Leibler divergence from the processor is 5.2e-03, and 184 likeliest
tokens are the same. That is the rounding of the processor, which rounds hidden states to 8 bits where it multiplies
quantized weights. From the same weights in float32 on the processor (`--exact`), the processor is 1.0e-02 away, with
176 likeliest tokens the same; this pipeline 4.5e-03, because its first stage is on the processor; and with all three
stages on the device (`--exact --all`) 4.4e-06, with all 200 the same. So no setting of the device brings it nearer to
the processor: without half precision (`GGML_VK_DISABLE_F16=1`), it is 5.2e-03 as well, and a driver without integer dot
products, such as this one, never rounds as the processor does.

Over three real nodes, one or two of which compute on the device, SmolLM2 and Gemma 3 270M answer with the tokens that
the whole model prefers: at least 85 % are its likeliest, and the others are near ties. When the lender with the device
is killed in mid-answer, its stage moves to a lender with only a processor, and back again when that one is killed
(tests/cards/test_real_nodes.py).

Engine: llama-cpp-python {version}. {summary}

| model | GGUF architecture | cuts | cut | device | mixed | tokens | note |
|---|---|---:|---:|---:|---:|---:|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One family's line."""

    family: str
    findings: dict[str, Any]  # those of family_case.Findings; empty if the case failed
    note: str = ""

    def markdown(self) -> str:
        architecture = families()[self.family].architecture
        if not self.findings:
            return f"| {self.family} | {architecture} | | | | | | {_FAILED}{self.note} |"
        f = self.findings
        tokens = f"{f['whole_tokens'] + f['mixed_tokens']} of {f['tokens'] + f['mixed_compared']}"
        notes = [note for note in (self.note, f"by {f['gap']:.1e} of a logit" if f["gap"] else "") if note]
        errors = " | ".join(
            f"{f[name]:.1e}" if f[name] else "0" for name in ("cut_error", "whole_error", "mixed_error")
        )
        return f"| {self.family} | {architecture} | {f['cuts']} | {errors} | {tokens} | {'; '.join(notes)} |"


def row_of(family: str, *arguments: str, within_s: float = WITHIN_S, variables: Mapping[str, str] | None = None) -> Row:
    """Compute one family; again without fused operations if the driver has crashed."""
    try:
        return Row(family, in_a_process(CASE, [family, *arguments], variables, within_s))
    except CaseFailed as failure:
        first = str(failure)
    if not first.startswith("signal"):
        return Row(family, {}, first)
    try:
        findings = in_a_process(CASE, [family, *arguments], NO_FUSION, within_s)
    except CaseFailed as failure:
        return Row(family, {}, f"{first}; without fused operations {failure}")
    return Row(family, findings, f"without fused operations; with them {first}")


def document(rows: Sequence[Row]) -> str:
    from tests.cards.family_case import N_DECODED

    worked = [row for row in rows if row.findings]
    exact = sum(row.findings["cut_error"] == 0 for row in worked)
    summary = f"{len(worked)} of {len(rows)} models were computed, in {exact} every cut is bit for bit the whole."
    if left := [name for name in families() if name not in {row.family for row in rows}]:
        summary += f"\n\nNot computed yet: {', '.join(left)}."
    head = HEAD.format(version=version("llama-cpp-python"), decoded=N_DECODED, summary=summary)
    return head + "\n".join(row.markdown() for row in rows) + "\n"


def _kept() -> dict[str, Row]:
    """Return the findings of earlier runs: those on the page, and newer ones."""
    rows = rows_of(DOCUMENT.read_text("utf-8"))
    if KEPT.exists():
        rows += [Row(**json.loads(line)) for line in KEPT.read_text("utf-8").splitlines()]
    return {row.family: row for row in rows}


_FAILED, _GAP = "**fails**: ", re.compile(r"(?:; )?by (\S+) of a logit$")


def rows_of(page: str) -> list[Row]:
    """Return the rows of the page's table, with as many digits as it shows."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    return [_read(cells) for cells in lines if cells[0] in families()]


def _read(cells: Sequence[str]) -> Row:
    family, _, cuts, cut, whole, mixed, tokens, note = cells
    if note.startswith(_FAILED):
        return Row(family, {}, note.removeprefix(_FAILED))
    equal, compared = map(int, tokens.split(" of "))
    gap = _GAP.search(note)
    findings = {
        "cuts": int(cuts),
        "cut_error": float(cut),
        "whole_error": float(whole),
        "mixed_error": float(mixed),
        "whole_tokens": equal,  # the page shows both together
        "mixed_tokens": 0,
        "tokens": compared,
        "mixed_compared": 0,
        "gap": float(gap[1]) if gap else 0.0,
    }
    return Row(family, findings, _GAP.sub("", note))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cards.report", description=__doc__)
    parser.add_argument("names", nargs="*", help="these models, and no document; else all")
    parser.add_argument("--resume", action="store_true", help="keep the findings of earlier runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--page", action="store_true", help="write the page from earlier findings, and compute nothing")
    args = parser.parse_args()
    if library() is None and not args.page:
        print("There is no Vulkan library: run `make engine BACKEND=vulkan` first.", file=sys.stderr)
        return 1
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    rows_by_name, lock = (_kept() if args.resume or args.page else {}), Lock()
    if not args.resume and not args.page:
        KEPT.unlink(missing_ok=True)

    def find(family: str) -> None:
        row = row_of(family)
        with lock, KEPT.open("a", encoding="utf-8") as file:
            rows_by_name[family] = row
            file.write(json.dumps({"family": family, "findings": row.findings, "note": row.note}) + "\n")
        print(row.markdown(), flush=True)

    left = [name for name in args.names or families() if name not in rows_by_name and not args.page]
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(find, left))
    rows = [rows_by_name[name] for name in families() if name in rows_by_name]
    if not args.names:
        DOCUMENT.write_text(document(rows), "utf-8", newline="\n")
    failed = [row.family for row in rows if not row.findings]
    print(f"{len(rows)} models, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
