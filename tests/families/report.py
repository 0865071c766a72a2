"""`make families-proof`: the whole proof, family by family, written to docs/families.md.

`--with PYTHON` runs it with another version of the engine too, in that interpreter, and prints what differs.
Stages compute in worker processes: what an engine does not survive is a finding, not the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path

from app.catalog.families.family_table import FAMILIES, Family
from app.catalog.families.layer_metadata import has_window
from app.catalog.gguf.gguf_file import read_header
from app.core.errors import AppError
from app.core.reasons import said
from tests.families import proof
from tests.families.driven import Workers
from tests.families.fixtures import families

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "families.md"
ENGINES = DOCUMENT.with_name("families-engines.md")
PROJECT = DOCUMENT.parent.parent
ONE_S = 120
MOST_WORDS = 160
HEAD = """# Which model families split

`make families-proof` writes this page. It cuts a tiny random model of each family at every legal place into two
stages, and at three random places into three (seed {seed}; a model with too few layers for that gets {more} more,
each a copy of a layer of the same kind). The stages compute in worker processes, and the app's own driver carries two
answers at once through them, each with a prompt in several chunks and 16 greedy tokens beyond its first. A worker
with the whole model computes the same steps, and every score is compared. A family that is not listed runs whole on
one computer, and so does a model whose metadata is outside what was proved for its family: see
`app/catalog/families/family_table.py`. The proof holds for the engine named below, so a computer with another version
gets no part of a model. `make families-proof ENGINE=VERSION` finds out what another version changes ([the last
time](families-engines.md)).

*Exact*: equal to the whole model, bit for bit. *Within noise*: the cut repeats a scaling of the engine, which rounds
once more; scores differ by no more than they do when a prompt comes in other chunks, and the tokens are the same.

*When slots share cells* (fewer than four people at once) and one slot is emptied while another answers, the other's
next tokens fill the freed cells, and llama.cpp adds up in another order. That happens in the whole model and in the
cut one, and both agree bit for bit if the slot was emptied between the same two steps. With several answers under
way, a later stage may empty it a step earlier than the first; scores then differ by some hundredths at most, as they
do when a prompt comes in other chunks. Slots with cells of their own are not affected
(`tests/families/test_shared_cells.py`).

*A context kept as q8_0* changes the scores of the whole model and of the cut one alike; for one family of each kind
`tests/families/test_quantized_kv.py` shows this bit for bit.

Engine: llama-cpp-python {version}, on the processor. {exact} exact, {noise} within noise, {whole} whole only.

| model | GGUF architecture | verdict | legal cuts | cuts compared | largest difference | tokens equal |
|---|---|---|---|---|---|---|
"""


OTHER = """# What another engine changes

`make families-proof ENGINE=VERSION` writes this page. It runs the proof of [families.md](families.md) with the engine
in use and with another version of it, and lists the differences.

{counts}

## {old} → {new}

{changed}
"""
UNKNOWN = "Why was not looked into."
# By version, what reading its source and computing whole models with it showed.
WHY = {
    "0.3.35": """\
Whole, every model that both versions load comes as close to transformers with 0.3.35 as with 0.3.36. The differences
come from how an engine reads a stage's metadata:

- gemma2, gemma3, gpt-oss, olmo2, cohere2, exaone-moe: 0.3.35 reads `attention.sliding_window_pattern` only as a
  period and ignores a list, which a cut writes (F3); a stage then counts its windows from its own first layer.
- granite_swa: 0.3.35 does not know the family.
- nemotron_h, nemotron_h_moe: 0.3.35 expects `attention.layer_norm_rms_epsilon`, which today's converter calls
  something else.

So a cut is right for the engine it was proved with, and may be silently wrong with another. A node computes parts of
models only with a proved version (`PROVED_ENGINES` in `backends/contract.py`), and otherwise refuses with a reason."""
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the document."""

    name: str
    architecture: str
    verdict: str
    legal: str
    compared: int = 0
    largest: float = 0.0
    tokens_equal: bool = True

    def markdown(self) -> str:
        figures = (f"{self.largest:.1e}" if self.largest else "0", "yes" if self.tokens_equal else "**no**")
        shown = (str(self.compared), *figures) if self.compared else ("", "", "")
        return f"| {' | '.join((self.name, self.architecture, self.verdict, self.legal, *shown))} |"


async def row_of(workers: Workers, name: str, seed: int) -> Row:
    """Prove one family, with the engine of this interpreter."""
    path = families()[name].path
    with tempfile.TemporaryDirectory() as folder:
        home = proof.home(Path(folder))
        model = home.shelf.import_file(path).model
        if model.cuts.whole_reason:
            return Row(name, model.architecture, "whole", said(model.cuts.whole_reason))
        tasks = proof.tasks(home, path, Path(folder), seed)
        legal = legal_cuts(FAMILIES[model.architecture], path)
        try:
            async with asyncio.timeout(ONE_S):
                result = await proof.prove_all(workers, home, tasks)
        except (AppError, TimeoutError) as error:
            return Row(name, model.architecture, "**fails**", failure(error))
    verdict = "exact" if result.largest == 0 else "within noise"
    if not result.holds:
        verdict = "**fails**"
    return Row(name, model.architecture, verdict, legal, len(result.cuts), result.largest, result.tokens_equal)


def failure(error: AppError | TimeoutError) -> str:
    """Why a model was not proved, in a line that names no folder."""
    if not isinstance(error, AppError):
        return f"no end within {ONE_S} s"
    words = said(error.reason)
    for fact in ("cause", "text", "words"):
        words = str(error.reason.facts.get(fact) or words)
    return " ".join(re.sub(r"\S*[/\\]", "", words).replace("|", "/").split())[:MOST_WORDS]


def legal_cuts(family: Family, path: Path) -> str:
    """Return in words where such a model may be cut."""
    header, said_so = read_header(path), []
    if (step := family.step(header)) > 1:
        said_so.append(f"at multiples of {step}")
    if family.window and not family.window.may_go and has_window(header):
        said_so.append("a sliding-window layer in each run")
    if family.recurrent and not family.recurrent.everywhere:
        said_so.append("an attention and a recurrent layer in each run")
    if family.not_long:
        said_so.append(f"no run of {' or '.join(map(str, family.not_long))} layers")
    return "; ".join(said_so) or "any"


async def rows(names: Sequence[str], seed: int, tell: Callable[[Row], None]) -> list[Row]:
    """The proof of these, with the engine of this interpreter. Workers that an engine took with it start anew."""
    result = []
    async with Workers() as workers:
        for name in names:
            result.append(await row_of(workers, name, seed))
            tell(result[-1])
    return result


def rows_with(python: str, names: Sequence[str], seed: int) -> list[Row]:
    """The same in another interpreter, which has another engine."""
    command = [python, "-m", "tests.families.report", "--json", "--seed", str(seed), *names]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [Row(**json.loads(line)) for line in done.stdout.splitlines()]


def engine_of(python: str) -> str:
    requests = [python, "-c", "import importlib.metadata as m; print(m.version('llama-cpp-python'))"]
    return subprocess.run(requests, capture_output=True, text=True, check=True).stdout.strip()


def document(results: list[Row], seed: int) -> str:
    verdicts = [row.verdict for row in results]
    head = HEAD.format(
        version=version("llama-cpp-python"), exact=verdicts.count("exact"),
        noise=verdicts.count("within noise"), whole=verdicts.count("whole"), seed=seed,
        more=proof.MORE_LAYERS,
    )  # fmt: skip
    return head + "\n".join(row.markdown() for row in results) + "\n"


def differences(before: list[Row], after: list[Row]) -> list[str]:
    """One line for each figure that another engine changes."""
    return [
        f"{old.name}: {field.name} {_shown(getattr(old, field.name))} -> {_shown(getattr(new, field.name))}"
        for old, new in zip(before, after, strict=True)
        for field in fields(Row)
        if getattr(old, field.name) != getattr(new, field.name)
    ]


def _shown(figure: object) -> str:
    return f"{figure:.1e}" if isinstance(figure, float) else str(figure)


def comparison(names: tuple[str, str], before: list[Row], after: list[Row]) -> str:
    """Return the changes by another engine as a document."""
    counts = [
        f"{name}: {sum(row.verdict == 'exact' for row in results)} exact, "
        f"{sum(row.verdict == 'within noise' for row in results)} within noise, "
        f"{sum(row.verdict == '**fails**' for row in results)} failed"
        for name, results in zip(names, (before, after), strict=True)
    ]
    lines = "\n".join(f"- {line}" for line in differences(before, after))
    why = WHY.get(names[1].rpartition(" ")[2], UNKNOWN)
    changed = f"{why}\n\n{lines}" if lines else "No difference."
    text = "\n".join(f"- {count}" for count in counts)
    return OTHER.format(old=names[0], new=names[1], counts=text, changed=changed)


def compare(python: str, names: Sequence[str], seed: int, results: list[Row]) -> str:
    """The proof once more with another engine: what differs."""
    engines = tuple(f"llama-cpp-python {engine_of(each)}" for each in (sys.executable, python))
    return comparison((engines[0], engines[1]), results, rows_with(python, names, seed))


def _keep(path: Path, text: str, names: Sequence[str]) -> int:
    """A document is of all models."""
    if not names:
        path.write_text(text, "utf-8", newline="\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.families.report", description=__doc__)
    parser.add_argument("names", nargs="*", help="these models, and no document; else all")
    parser.add_argument("--json", action="store_true", help="rows as JSON, and no document")
    parser.add_argument("--with", dest="other", help="an interpreter that has another engine")
    parser.add_argument("--seed", type=int, default=proof.SEED, help="chooses cuts into three")
    args = parser.parse_args()
    names = args.names or list(families())
    if args.json:
        tell = partial(print, flush=True)
        asyncio.run(rows(names, args.seed, lambda row: tell(json.dumps(asdict(row)))))
        return 0
    print(f"cuts into three by seed {args.seed}")
    result = asyncio.run(rows(names, args.seed, lambda row: print(row.markdown(), flush=True)))
    if args.other:
        text = compare(args.other, names, args.seed, result)
        print(text)
        return _keep(ENGINES, text, args.names)
    _keep(DOCUMENT, document(result, args.seed), args.names)
    failed = [row.name for row in result if row.verdict == "**fails**"]
    print(f"{len(result)} models proved, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
