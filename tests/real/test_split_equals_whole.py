"""Split = whole on real weights: real workers, the real driver, five cuts into two to four stages, both types of KV.

The scores of every token are compared bit for bit with those of the whole model that computes the same steps. "The
same steps" matters on real weights. A few values of a trained model are thousands of times as large as the others
(massive activations), and the engine rounds what enters a matrix to 8 bits in blocks of 256: one last bit decides
about a whole step of that rounding, and scores move by 1 to 2. Five greedy answers of 40 tokens each, on two cores
with AVX2, compared with themselves:

| changed | Gemma 3 270M, same answers, largest difference | SmolLM2 135M |
|---|---|---|
| threads, slots, cells, rows that a step may have | 5 of 5, 0 | 5 of 5, 0 |
| the prompt by 4 rows instead of 6 to 8 at once | 4 of 5, 1.1 | 5 of 5, 0 |
| the prompt by 1 row | 2 of 5, 2.3 | 5 of 5, 0 |
| flash attention off | 2 of 5, 2.1 | 0 of 5, 1.6 |
| llama.cpp's binding, flash attention on | 5 of 5, 0 | 5 of 5, 0 |
| llama.cpp's binding as it comes: flash attention off | 2 of 5, 2.1 | 0 of 5, 1.6 |

So an answer is compared with one of the same chunks and the same attention. Chunks matter to Gemma alone, mostly
because the engine lays its Q4_K weights out anew and multiplies four rows at once with other roundings than one: told
not to, 4 of 5 answers are the same by 1 row. It does nothing of the kind with SmolLM2's Q4_1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from app.inference.worker.tokenizer import TextWorker
from backends.contract import KvType, Role, Segment
from backends.llamacpp import binding
from scripts.real_models import GEMMA3, SMOLLM2
from tests.families import proof
from tests.families.driven import Workers
from tests.families.home import Home
from tests.families.line import Line, Scores
from tests.real.words import PASSAGE, STORY

CUTS: dict[str, tuple[proof.Cuts, ...]] = {
    SMOLLM2.file: ((15,), (1, 29), (7, 20), (4, 17), (7, 14, 23)),
    GEMMA3.file: ((5,), (1, 17), (6, 12), (4, 9, 14), (5, 10, 16)),
}
CHUNKS = (16, 24)  # in which the prompt enters
N_DECODED = 12


@pytest.fixture(params=CUTS)
def entry(request: pytest.FixtureRequest, kept: Path, home: Home) -> Entry:
    return home.shelf.import_file(kept / request.param)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return proof.home(tmp_path)


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    async with Workers() as some:
        yield some


async def ids_of(entry: Entry, text: str) -> tuple[int, ...]:
    """Its tokens."""
    async with await TextWorker.open(entry.path) as reader:
        return await reader.tokenize(text)


@pytest.mark.parametrize("kv", list(KvType))
async def test_every_cut_says_the_bits_of_the_whole(entry: Entry, home: Home, workers: Workers, kv: KvType) -> None:
    both = ((await ids_of(entry, PASSAGE))[: proof.FIRST], (await ids_of(entry, STORY))[: proof.SECOND])
    cuts = CUTS[Path(entry.path).name]
    assert {len(cut) + 1 for cut in cuts} == {2, 3, 4}
    with_kv = Home(home.shelf, home.stages, kv)
    verdict = await proof.prove(workers, with_kv, entry, cuts, prompts=both)
    assert verdict.exact
    assert verdict.tokens_equal
    assert verdict.largest == 0.0


async def test_the_whole_says_the_bits_of_the_engines_own_binding(entry: Entry, home: Home) -> None:
    """Both sides use flash attention. If only one does, the engine itself gives other scores."""
    prompt = (await ids_of(entry, PASSAGE))[: sum(CHUNKS)]
    (run,) = proof.runs(entry.model.n_layers, ())
    with Line([home.config(entry, *run, apart=False)]) as line:
        ours = greedy(line, prompt)
    assert run[1] is Role.WHOLE
    assert np.array_equal(by_the_binding(entry, prompt, flash=True), ours)
    assert not np.array_equal(by_the_binding(entry, prompt, flash=False)[0], ours[0])


def greedy(line: Line, prompt: Sequence[int]) -> list[Scores]:
    """The scores after the prompt in its chunks, and after each of some greedy tokens."""
    line.begin(0, len(prompt))
    first, second = CHUNKS
    line.step([Segment(0, first, 0)], prompt[:first])
    rows = [line.step([Segment(0, second, first)], prompt[first:])[0]]
    for at in range(len(prompt), len(prompt) + N_DECODED):
        rows.append(line.step([Segment(0, 1, at)], [int(rows[-1].argmax())])[0])
    return rows


def by_the_binding(entry: Entry, prompt: Sequence[int], flash: bool) -> list[Scores]:
    """The same from llama_cpp.Llama."""
    llama, first = binding.load(), CHUNKS[0]
    with closing(binding.llama_class()(entry.path, n_ctx=512, n_threads=1, flash_attn=flash, verbose=False)) as model:

        def last() -> Scores:
            row = llama.llama_get_logits_ith(model.ctx, -1)
            scores: Scores = np.ctypeslib.as_array(row, shape=(model.n_vocab(),)).copy()
            return scores

        model.eval(prompt[:first])
        model.eval(prompt[first:])
        rows = [last()]
        for _ in range(N_DECODED):
            model.eval([int(rows[-1].argmax())])
            rows.append(last())
    return rows
