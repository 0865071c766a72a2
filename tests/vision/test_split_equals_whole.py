"""A split model sees what the whole model sees: mtmd's own evaluation of the same picture and text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from app.inference.pipeline.completion import Completer, GenerationRequest, Summary
from app.inference.pipeline.pictures import Pictures, Vision
from app.inference.pipeline.pipeline import Pipeline
from app.inference.worker.tokenizer import TextWorker
from app.inference.worker.vision import VisionWorker
from tests.families import proof
from tests.families.driven import Overheard, Workers, driven
from tests.families.home import ROWS, Home
from tests.vision.reference import MARKER, Reference, reference
from tests.vision.tiny_models import pixels, png, projector, text_model

KINDS = {"gemma3": "gemma3", "idefics3": "llama"}  # of projectors, and the families of their text models here
N_TOKENS = 12
FIRST, SECOND = pixels(1), pixels(2, 24, 24)


@dataclass(frozen=True, slots=True)
class Seeing:
    """A tiny model that sees, on a shelf."""

    home: Home
    entry: Entry
    model: Path
    projector: Path


@pytest.fixture(scope="module", params=list(KINDS))
def seeing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seeing:
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    model = text_model(kind, KINDS[kind], folder / f"{kind}.gguf")
    home = proof.home(folder)
    entry = home.shelf.import_file(model)
    of_model = projector(kind, entry.model.width, folder / f"other-{kind}.gguf")
    return Seeing(home, entry, model, of_model)


@asynccontextmanager
async def completer(seeing: Seeing, workers: Workers, cuts: proof.Cuts) -> AsyncIterator[tuple[Completer, Overheard]]:
    layers = proof.runs(seeing.entry.model.n_layers, cuts)
    driving = driven(workers, seeing.home, seeing.entry, layers, apart=proof.keeps_apart(cuts))
    async with driving as (pipeline, heard), await TextWorker.open(seeing.entry.path) as text:
        assert isinstance(pipeline, Pipeline)
        worker = await VisionWorker.open(seeing.entry.path, str(seeing.projector), 1)
        try:
            yield Completer(text, pipeline, "tiny", Vision(worker, ROWS)), heard
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
    )
    marker = MARKER.decode()
    text = f"<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n"
    return request, text.replace(first, marker).replace(second, marker)


async def answered(completing: Completer, request: GenerationRequest) -> Summary:
    async for part in completing.answer(request):
        if isinstance(part, Summary):
            return part
    raise AssertionError


def expected(seeing: Seeing) -> Reference:
    return reference(seeing.model, seeing.projector, question()[1], (FIRST, SECOND), N_TOKENS)


def test_every_cut_says_what_mtmd_says_of_the_whole_file(seeing: Seeing) -> None:
    known = expected(seeing)
    largest = 0.0

    async def compare() -> None:
        nonlocal largest
        async with Workers() as workers:
            for cuts in ((), *proof.twos(seeing.entry.model), *proof.threes(seeing.entry.model)):
                async with completer(seeing, workers, cuts) as (completing, heard):
                    got = await answered(completing, question()[0])
                    assert got.prompt_tokens == known.n_prompt
                    assert got.token_ids[:N_TOKENS] == known.tokens, cuts
                    for n, row in enumerate(known.scores):
                        score = heard.scores[0, known.n_prompt + n]
                        largest = max(largest, float(np.abs(score - row).max()))

    asyncio.run(compare())
    assert largest <= proof.NOISE
    print(f"largest difference: {largest}")


def test_without_the_pictures_it_says_something_else(seeing: Seeing) -> None:
    """The comparison means nothing if the pictures do not matter."""
    known = expected(seeing)
    other = reference(seeing.model, seeing.projector, question()[1], (SECOND, FIRST), N_TOKENS)
    assert np.abs(other.scores[0] - known.scores[0]).max() > 10 * proof.NOISE
