"""A broken model file is told as what it is, whatever it does to an engine; no machine is lost, a good file loads."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.broken.files import retyped, without_numbers
from tests.broken.household import Household, Told, household, source

LLAMA, GEMMA = source("llama"), source("gemma2")
ASSERTS, CRASHES = (27, 9)  # 64-bit integers, and a type that no weights have: what the engine makes of them


def flipped(path: Path) -> None:
    """Another byte, the same size and time."""
    was = path.stat()
    with path.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-100, os.SEEK_END)
        file.write(bytes([byte ^ 0x41]))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def plain(to: Path) -> None:
    to.write_bytes(LLAMA.read_bytes())


Make = Callable[[Path], None]
# how it is made, what is done to it between its plan and its load, whether on the host alone, how that ends
FILES: dict[str, tuple[Make, Make | None, bool, str]] = {
    "the lender's engine gives up at the first token": (
        partial(retyped, LLAMA, tensor="blk.1.attn_norm.weight", kind=ASSERTS),
        None, False, "load: engine_gave_up there",
    ),
    "the lender's engine crashes at the first token": (
        partial(retyped, GEMMA, tensor="blk.2.attn_k.weight", kind=CRASHES),
        None, False, "load: model_fails_there",
    ),
    "the host's engine crashes at the first token": (
        partial(retyped, GEMMA, tensor="blk.0.attn_k.weight", kind=CRASHES),
        None, False, "load: model_ends_process",
    ),
    "it crashes the only engine": (
        partial(retyped, GEMMA, tensor="blk.1.attn_k.weight", kind=CRASHES),
        None, True, "load alone: model_ends_process",
    ),
    "the lender's numbers are none": (
        partial(without_numbers, LLAMA, tensor="blk.1.attn_norm.weight"),
        None, False, "load: model_fails_there",
    ),
    "the file vanishes": (plain, Path.unlink, False, "load: model_gone"),
    "the file is cut": (plain, halved, False, "load: model_changed"),
    "a byte flips, and neither size nor time says so": (plain, flipped, True, "load alone: model_changed"),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    with household(tmp_path_factory.mktemp("broken")) as made:
        asyncio.run(made.begin())
        yield made


@pytest.mark.parametrize("label", FILES)
def test_a_broken_file_is_named_and_no_machine(label: str, home: Household) -> None:
    make, meanwhile, alone, end = FILES[label]
    make(home.path)
    result = asyncio.run(home.tell(Told(1, label), alone=alone, meanwhile=meanwhile or (lambda _: None)))
    assert (result.end, result.wrong) == (end, [])
    assert re.search("different model file|Put it back|import it again", result.sentence)


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("seed", range(12))
def test_a_file_broken_by_chance_is_named_and_no_machine(seed: int, home: Household) -> None:
    result = asyncio.run(home.run(seed))
    assert not result.wrong, result
