"""A smaller model on the host writes ahead of a loaded one: chosen by itself, by name, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, suppress
from typing import Any

import psutil
import pytest

from app.client import NodeClient
from app.core.errors import AppError
from testbed import tiny
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
ASK = {"prompt": "How?", "raw": True, "ignore_end": True, "max_tokens": 40, "model": "large", "sampling": {"seed": 3}}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    folder = tmp_path_factory.mktemp("draft")
    with paired(folder, "den") as nodes:
        tiny.llama(folder / "large.gguf", layers=8, width=256, ffn=4096, seed=1)
        tiny.llama(folder / "small.gguf", layers=2, width=64, seed=1)
        tiny.llama(folder / "other.gguf", layers=2, width=64, vocab=tiny.Shape().vocab + 7, seed=1)
        for name in ("large", "small", "other"):
            assert nodes[0].run("import", str(folder / f"{name}.gguf")).returncode == 0
        yield nodes[0]


def n_workers(node: TestNode) -> int:
    n = 0
    for child in psutil.Process(node.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a zombie is one, too
            n += "backends" in child.cmdline() or "-P" in child.cmdline()
    return n


async def loaded(node: TestNode, host: NodeClient, **how: Any) -> tuple[int, list[int]]:
    """Return how many workers the node has with the model loaded so, and an answer."""
    await host.work("POST", "/load", {"model": "large", "shape": "one"} | how)
    ids: list[int] = []
    async with aclosing(host.stream("POST", "/ask", ASK)) as lines:
        async for line in lines:
            ids = line.get("done", {}).get("token_ids", ids)
    return n_workers(node), ids


async def test_a_draft_that_is_named_or_chosen_changes_no_answer(node: TestNode) -> None:
    async with node.client() as host:
        plain, answer = await loaded(node, host, draft="none")
        assert len(answer) == ASK["max_tokens"]
        for how in ({"draft": "small"}, {"draft": "auto"}):
            n, same = await loaded(node, host, **how)
            assert n == plain + 1, how
            assert same == answer
        assert (await loaded(node, host, draft="none"))[0] == plain


@pytest.mark.parametrize(("name", "code"), [("other", "draft_other_tokens"), ("nobody", "model_unknown")])
async def test_a_draft_that_was_chosen_and_cannot_be_used_is_refused(node: TestNode, name: str, code: str) -> None:
    async with node.client() as host:
        with pytest.raises(AppError) as refused:
            await host.work("POST", "/load", {"model": "large", "shape": "one", "draft": name})
        assert code in str(refused.value.reason.to_json())


async def test_the_plan_of_the_loaded_model_says_which_draft_it_has(node: TestNode) -> None:
    async with node.client() as host:
        for how, code in (("small", "plan_draft"), ("auto", "plan_draft"), ("none", "")):
            await loaded(node, host, draft=how)
            model = node.control("GET", "/status")["loaded"]
            codes = [reason["code"] for reason in model["why"] if reason["code"].startswith("plan_draft")]
            assert codes == ([code] if code else [])
            assert model["draft_ordered"] == how
        await host.work("POST", "/load", {"model": "small", "shape": "one", "draft": "auto"})
        why = [reason["code"] for reason in node.control("GET", "/status")["loaded"]["why"]]
        assert "plan_draft_none" in why or "plan_draft_refused" in why
