"""Real models over three real nodes: wire and KV types, replicas, prefixes, eight at once, and killed lenders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scripts.real_models import GEMMA3, MODELS, SMOLLM2
from tests.node.pool import TestNode
from tests.real.asking import SPLITS, Json, ask, begun, load, opinions_of
from tests.real.words import BEGUN, PASSAGE, STORY

FILES = [model.file for model in MODELS]
MEAN_GAP, AGREEMENT = (0.2, 0.85)  # of tokens that were computed in other chunks, or came through a narrow wire
SPREAD = ["den", "attic", "kitchen", "den"]


@pytest.mark.parametrize("kv", ["f16", "q8_0"])
@pytest.mark.parametrize("file", FILES)
async def test_a_split_model_answers_as_the_whole_one(nodes: list[TestNode], file: str, kv: str) -> None:
    async with nodes[0].client() as host:
        n_layers = sum(SPLITS[file])
        await load(host, file, split=[n_layers], kv=kv)
        whole = [await ask(host, prompt=text, raw=True) for text in BEGUN[:4]]
        await load(host, file, kv=kv)
        split = [await ask(host, prompt=text, raw=True) for text in BEGUN[:4]]
    assert [stage["machine"] for stage in split[0]["placement"]] == SPREAD
    assert [item["token_ids"] for item in split] == [item["token_ids"] for item in whole]
    assert [item["text"] for item in split] == [item["text"] for item in whole]


@pytest.mark.parametrize("number", ["f16", "q8"])
@pytest.mark.parametrize("file", FILES)
async def test_every_wire_type_holds_the_model(
    nodes: list[TestNode], kept: Path, tmp_path: Path, file: str, number: str
) -> None:
    prompts = await begun(kept / file, *BEGUN[:3])
    async with nodes[0].client() as host:
        await load(host, file, number=number)
        reports = [await ask(host, prompt_ids=ids) for ids in prompts]
    assert [item["notices"] for item in reports] == [[]] * len(reports)
    pairs = [(ids, item["token_ids"]) for ids, item in zip(prompts, reports, strict=True)]
    opinions = await opinions_of(tmp_path, kept / file, pairs)
    assert all(opinion.mean_gap < MEAN_GAP for opinion in opinions), opinions
    assert all(opinion.agreement >= AGREEMENT for opinion in opinions), opinions


@pytest.mark.parametrize("file", FILES)
async def test_eight_answers_at_once_are_each_their_own(
    nodes: list[TestNode], kept: Path, tmp_path: Path, file: str
) -> None:
    prompts = await begun(kept / file, *BEGUN)
    async with nodes[0].client() as host:
        await load(host, file, users=8, context=256)
        results = await asyncio.gather(*(ask(host, prompt_ids=ids) for ids in prompts))
    pairs = [(ids, item["token_ids"]) for ids, item in zip(prompts, results, strict=True)]
    opinions = await opinions_of(tmp_path, kept / file, pairs)
    assert all(opinion.mean_gap < MEAN_GAP and opinion.agreement >= AGREEMENT for opinion in opinions), opinions


@pytest.mark.parametrize("file", FILES)
async def test_a_later_turn_reuses_what_was_read(nodes: list[TestNode], kept: Path, tmp_path: Path, file: str) -> None:
    (first,) = await begun(kept / file, PASSAGE)
    async with nodes[0].client() as host:
        await load(host, file)
        answer = await ask(host, prompt_ids=first, conversation="long", max_tokens=8)
        later = [*first, *answer["token_ids"], *first[1:9]]
        two = await ask(host, prompt_ids=later, conversation="long")
    assert answer["reused_tokens"] == 0
    assert two["reused_tokens"] >= len(first)
    (opinion,) = await opinions_of(tmp_path, kept / file, [(later, two["token_ids"])])
    assert opinion.mean_gap < MEAN_GAP
    assert opinion.agreement >= AGREEMENT


async def test_replicas_say_the_same(nodes: list[TestNode]) -> None:
    texts = BEGUN[:6]
    async with nodes[0].client() as host:
        await load(host, SMOLLM2.file, split=[30], context=256)
        alone = [await ask(host, prompt=text, raw=True) for text in texts]
        loaded = await load(host, SMOLLM2.file, split=None, shape="replicas", users=6, context=256)
        assert [replica["state"] for replica in loaded["replicas"]] == ["ready"] * len(loaded["replicas"])
        assert len(loaded["replicas"]) > 1
        results = await asyncio.gather(*(ask(host, prompt=text, raw=True) for text in texts))
    assert len({item["placement"][0]["machine"] for item in results}) > 1
    assert [item["text"].split()[:3] for item in results] == [item["text"].split()[:3] for item in alone]


async def test_a_lender_killed_in_mid_answer_costs_no_word(nodes: list[TestNode]) -> None:
    """First a lender's worker, then the whole lender; for good, so this test is the last of the file."""
    _, attic, _ = nodes
    async with nodes[0].client() as host:
        for file, number in ((SMOLLM2.file, "f32"), (GEMMA3.file, "f16")):
            await load(host, file, number=number)
            request: Json = {"prompt": STORY, "raw": True, "ignore_end": True, "max_tokens": 48}
            before = await ask(host, **request)
            await load(host, file, number=number)  # nothing of the first answer is reused
            victim = attic.process if file == GEMMA3.file else await attic.one_worker()
            struck: list[int] = []

            def strike(n: int, victim: object = victim, struck: list[int] = struck) -> None:
                if n >= 8 and not struck:
                    struck.append(n)
                    victim.kill()  # type: ignore[attr-defined]

            answer = await ask(host, strike, **request)
            assert struck
            assert len(answer["token_ids"]) == 48
            n_kept = struck[0]
            assert answer["token_ids"][:n_kept] == before["token_ids"][:n_kept]
            assert answer["recoveries"]
            assert "attic" in answer["notices"][0]["text"]
            if number == "f32":  # replayed in the same steps
                assert answer["token_ids"] == before["token_ids"]
