"""A split model sees what the whole model sees: mtmd's own evaluation of the same picture and text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from app.core.errors import Reason
from app.inference.pipeline.completion import Completer, GenerationRequest, Summary
from app.inference.pipeline.pictures import Pictures, Vision
from app.inference.pipeline.pipeline import Pipeline
from app.inference.worker.tokenizer import TextWorker
from app.inference.worker.vision import VisionWorker
from backends.contract import Layers, Role, StageConfig
from tests.families import proof
from tests.families.driven import Overheard, Workers, driven
from tests.families.home import CONTEXT, Home
from tests.vision.reference import MARKER, STEP_ROWS, Reference, reference
from tests.vision.tiny_models import Rgb, pixels, png, projector, text_model

# Kinds of projectors, and the families of their text models here
KINDS = {
    "gemma3": "gemma3",
    "gemma4v": "gemma4",
    "idefics3": "llama",
    "qwen2vl_merger": "qwen2-5-vl",
    "qwen2.5vl_merger": "qwen2-5-vl",
    "qwen3vl_merger": "qwen3-5",
}
MOST_ROWS = {"gemma4v": 72}  # it makes at least 70
N_TOKENS = 12
FIRST, SECOND = pixels(1), pixels(2, 24, 24)


class WideHome(Home):
    """A home whose stages have room for a picture in one step."""

    def config(self, entry: Entry, layers: Layers, role: Role, *, apart: bool) -> StageConfig:
        return replace(Home.config(self, entry, layers, role, apart=apart), batch_rows=STEP_ROWS)


@dataclass(frozen=True, slots=True)
class Seeing:
    """A tiny model that sees, on a shelf."""

    kind: str
    home: Home
    entry: Entry
    model: Path
    projector: Path


LIKE_ANOTHER = "qwen2vl_merger"  # whose rows the text model takes like those of the next kind


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.long) if kind == LIKE_ANOTHER else kind for kind in KINDS],
)
def seeing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seeing:
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    model = text_model(kind, KINDS[kind], folder / f"{kind}.gguf")
    usual = proof.home(folder)
    home = WideHome(usual.shelf, usual.stages)
    entry = home.shelf.import_file(model)
    of_model = projector(kind, entry.model.width, folder / f"other-{kind}.gguf")
    return Seeing(kind, home, entry, model, of_model)


@asynccontextmanager
async def completer(seeing: Seeing, workers: Workers, cuts: proof.Cuts) -> AsyncIterator[tuple[Completer, Overheard]]:
    layers = proof.runs(seeing.entry.model.n_layers, cuts)
    driving = driven(workers, seeing.home, seeing.entry, layers, apart=proof.keeps_apart(cuts))
    async with driving as (pipeline, heard), await TextWorker.open(seeing.entry.path) as text:
        assert isinstance(pipeline, Pipeline)
        most = MOST_ROWS.get(seeing.kind, 0)
        worker = await VisionWorker.open(seeing.entry.path, str(seeing.projector), 1, most_rows=most)
        try:
            yield Completer(text, pipeline, "tiny", Vision(worker, STEP_ROWS, CONTEXT)), heard
        finally:
            await worker.close()


def question(*, conversation: str | None = None, more: str = "") -> tuple[GenerationRequest, str]:
    """A question with two pictures, and the same with the reference's markers."""
    pictures = Pictures()
    first, second = pictures.add(png(FIRST)), pictures.add(png(SECOND))
    words = f"{first}What is on{second} it?{more}"
    request = GenerationRequest(
        [{"role": "user", "content": words}],
        pictures=pictures.files,
        max_tokens=N_TOKENS + 1,
        ignore_end=True,
        conversation=conversation,
        guesses=False,  # the last digits of a row depend on how many are checked with it
    )
    marker = MARKER.decode()
    text = f"<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n"
    return request, text.replace(first, marker).replace(second, marker)


async def answered(completing: Completer, request: GenerationRequest) -> Summary:
    async for part in completing.answer(request):
        if isinstance(part, Summary):
            return part
    raise AssertionError


def expected(seeing: Seeing, pictures: tuple[Rgb, Rgb] = (FIRST, SECOND)) -> Reference:
    most = MOST_ROWS.get(seeing.kind, 0)
    return reference(seeing.model, seeing.projector, question()[1], pictures, N_TOKENS, most)


def test_every_cut_says_what_mtmd_says_of_the_whole_file(seeing: Seeing) -> None:
    known = expected(seeing)

    async def compare() -> None:
        async with Workers() as workers:
            for cuts in ((), *proof.twos(seeing.entry.model), *proof.threes(seeing.entry.model)):
                async with completer(seeing, workers, cuts) as (completing, heard):
                    got = await answered(completing, question()[0])
                    assert got.prompt_tokens == known.n_prompt
                    assert got.token_ids[:N_TOKENS] == known.tokens, cuts
                    for n, row in enumerate(known.scores):
                        assert np.array_equal(heard.scores[0, known.n_prompt + n], row), cuts

    asyncio.run(compare())


def test_answers_at_the_same_time_are_those_of_each_alone(seeing: Seeing) -> None:
    """One slot computes its pictures while the other one's answer is generated."""

    async def compare() -> None:
        (cuts, *_) = proof.twos(seeing.entry.model)
        async with Workers() as workers, completer(seeing, workers, cuts) as (completing, _):
            seen, text = question()[0], GenerationRequest(prompt="Hello", max_tokens=60, ignore_end=True)
            alone = [await answered(completing, request) for request in (text, seen)]
            both = await asyncio.gather(*(answered(completing, request) for request in (text, seen)))
            assert [summary.token_ids for summary in both] == [summary.token_ids for summary in alone]
            # in the slot that had pictures before, text has its usual positions again
            assert (await answered(completing, text)).token_ids == alone[0].token_ids

    asyncio.run(compare())


def test_a_later_turn_reads_no_picture_again(seeing: Seeing) -> None:
    async def compare() -> None:
        (cuts, *_) = proof.twos(seeing.entry.model)
        async with Workers() as workers, completer(seeing, workers, cuts) as (completing, _):
            fresh = await answered(completing, question(more=" And now?")[0])
            first = await answered(completing, question(conversation="one")[0])
            later = await answered(completing, question(conversation="one", more=" And now?")[0])
            assert later.token_ids == fresh.token_ids
            n_after = fresh.prompt_tokens - first.prompt_tokens
            if seeing.kind != "qwen3vl_merger":  # a recurrent state can only be cut back to where it was kept
                assert fresh.prompt_tokens - later.reused_tokens < 40 + n_after
                assert later.reused_tokens > 0

    asyncio.run(compare())


def test_a_projector_whose_process_dies_is_loaded_again(seeing: Seeing) -> None:
    async def compare() -> None:
        most = MOST_ROWS.get(seeing.kind, 0)
        worker = await VisionWorker.open(seeing.entry.path, str(seeing.projector), 1, most_rows=most)
        try:
            first, again = await worker.see(png(FIRST)), await worker.see(png(FIRST))
            assert again is first
            worker._worker.kill(Reason("worker_closed", {"worker": "eyes"}))
            await worker._worker.wait_dead()
            second = await worker.see(png(SECOND))
            worker._seen.clear()
            assert await worker.see(png(FIRST)) == first  # the same rows by the same ids
            ids = [{token for part in picture.parts if part.rows for token in part.ids} for picture in (first, second)]
            assert ids[0].isdisjoint(ids[1])
        finally:
            await worker.close()

    asyncio.run(compare())


def test_without_the_pictures_it_says_something_else(seeing: Seeing) -> None:
    """The comparison means nothing if the pictures do not matter."""
    known = expected(seeing)
    other = expected(seeing, (SECOND, FIRST))
    apart = [np.abs(left - right).max() for left, right in zip(other.scores, known.scores, strict=True)]
    assert max(apart) > 10 * proof.NOISE
