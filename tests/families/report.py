"""`make families-proof`: the whole proof, family by family, written to docs/families.md.

`--with PYTHON` runs it with another version of the engine too, in that interpreter, and prints what differs.
Each family is proved in a process of its own: what an engine does not survive is a finding, not the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path

from app.catalog.families import FAMILIES, Family
from app.catalog.gguf_check import read_header
from app.catalog.variants import has_window
from app.core.reasons import said
from tests.families import proof
from tests.families.fixtures import families
from tests.families.line import StageRefused

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "families.md"
PROJECT = DOCUMENT.parent.parent
ONE_S = 300
HEAD = """# Which model families split

Written by `make families-proof`, which cuts a tiny random model of each family at every legal place into two stages
and at some random ones into three, and compares every score with the whole model's: two prompts in two chunks each,
then 16 greedy tokens of both together. A family that is not listed runs whole on one computer, and so does a model
whose metadata is outside what was proved of its family (`app/catalog/families.py` has the facts).

*Exact*: bit for bit the whole model. *Within noise*: the cut scales what the engine scales in the whole, which rounds
once more; scores differ by no more than they do when a prompt comes in other chunks, and the tokens are the same.

Engine: llama-cpp-python {version}, on the processor. {exact} exact, {noise} within noise, {whole} whole only.

| model | GGUF architecture | verdict | legal cuts | cuts compared | largest difference | tokens equal |
|---|---|---|---|---|---|---|
"""


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
        figures = (
            f"{self.largest:.1e}" if self.largest else "0",
            "yes" if self.tokens_equal else "**no**",
        )
        shown = (str(self.compared), *figures) if self.compared else ("", "", "")
        return f"| {' | '.join((self.name, self.architecture, self.verdict, self.legal, *shown))} |"


def row_of(name: str) -> Row:
    """Prove one family, in this process."""
    path = families()[name].path
    with tempfile.TemporaryDirectory() as folder:
        home = proof.home(Path(folder))
        entry = home.shelf.import_file(path)
        model = entry.model
        if model.whole_reason:
            return Row(name, model.architecture, "whole", said(model.whole_reason))
        cuts = [*proof.twos(model), *proof.threes(model)]
        legal = legal_cuts(FAMILIES[model.architecture], path)
        try:
            found = proof.prove(home, entry, cuts)
        except StageRefused as error:
            return Row(name, model.architecture, "**fails**", f"refused: {str(error)[:80]}")
    verdict = "exact" if found.largest == 0 else "within noise"
    if not found.holds:
        verdict = "**fails**"
    return Row(
        name, model.architecture, verdict, legal, len(cuts), found.largest, found.tokens_equal
    )


def legal_cuts(family: Family, path: Path) -> str:
    """Where a model like this may be cut, in words."""
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


def rows(python: str) -> list[Row]:
    """The whole proof, with the engine of this interpreter."""
    return [_in_its_process(python, name) for name in families()]


def _in_its_process(python: str, name: str) -> Row:
    command = [python, "-m", "tests.families.report", "--one", name]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "GGML_NO_BACKTRACE": "1"}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
        timeout=ONE_S,
    )  # fmt: skip
    if done.returncode:
        architecture = families()[name].architecture
        return Row(name, architecture, "**fails**", f"the engine ended with {done.returncode}")
    return Row(**json.loads(done.stdout))


def engine_of(python: str) -> str:
    asked = [python, "-c", "import importlib.metadata as m; print(m.version('llama-cpp-python'))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def document(found: list[Row]) -> str:
    verdicts = [row.verdict for row in found]
    head = HEAD.format(
        version=version("llama-cpp-python"), exact=verdicts.count("exact"),
        noise=verdicts.count("within noise"), whole=verdicts.count("whole"),
    )  # fmt: skip
    return head + "\n".join(row.markdown() for row in found) + "\n"


def differences(before: list[Row], after: list[Row]) -> list[str]:
    """One line for each figure that another engine changes."""
    return [
        f"{old.name}: {field.name} {getattr(old, field.name)} -> {getattr(new, field.name)}"
        for old, new in zip(before, after, strict=True)
        for field in fields(Row)
        if getattr(old, field.name) != getattr(new, field.name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.families.report", description=__doc__)
    parser.add_argument("--one", help="one family, as JSON")
    parser.add_argument("--with", dest="other", help="an interpreter that has another engine")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(asdict(row_of(asked.one))))
        return 0
    found = rows(sys.executable)
    if asked.other:
        changed = differences(found, rows(asked.other))
        print(f"llama-cpp-python {engine_of(sys.executable)} -> {engine_of(asked.other)}:")
        print("\n".join(changed) or "no difference")
        return 0
    DOCUMENT.write_text(document(found), "utf-8", newline="\n")
    failed = [row.name for row in found if row.verdict == "**fails**"]
    print(f"{len(found)} models proved, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
