"""A chat with SmolLM2, by its own template, over three nodes: every door of the household gives the same answer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.core import chat as tree
from app.gui.chat.chat_page import ChatPage
from app.gui.look.language import translators
from backends.llamacpp import binding
from scripts.real_models import SMOLLM2
from testbed.desk import Desk, desk
from tests.gateway.conftest import Open, opened
from tests.gui.desk import follow
from tests.node.pool import TestNode
from tests.real.asking import SPLITS, Json, ask, load
from tests.real.words import QUESTION

MODEL = SMOLLM2.file
ASKED = [{"role": "user", "content": QUESTION}]
MOST_TOKENS = 24
# What the model's template makes of the question, written down by hand: it puts a system message of its own first.
RENDERED = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
)
WITHIN_MS = 120_000


@pytest.fixture(scope="module")
def api(nodes: list[TestNode]) -> Open:
    """The model split over all three, and the Chat API of its host."""
    asyncio.run(_load(nodes[0]))
    return opened(nodes[0])


async def _load(host: TestNode) -> None:
    async with host.client() as client:
        await load(client, MODEL, users=2)


@pytest.fixture(scope="module")
def expected(api: Open, kept: Path) -> str:
    """Return the answer of the loopback API, which the window uses: that of the engine itself to the same text."""
    result = asyncio.run(_asked(api.node))
    machines = [stage["machine"] for stage in result["placement"]]
    assert machines == ["den", "attic", "kitchen", "den"]
    assert len(machines) == len(SPLITS[MODEL])
    assert result["text"] == by_the_binding(kept / MODEL)
    return str(result["text"])


def by_the_binding(file: Path) -> str:
    """Greedy, from llama_cpp.Llama on the whole file."""
    with closing(binding.llama_class()(str(file), n_ctx=256, n_threads=1, flash_attn=True, verbose=False)) as model:
        prompt = model.tokenize(RENDERED.encode(), add_bos=False, special=True)
        stream = model.generate(prompt, temp=0, top_k=1, repeat_penalty=1.0)
        ids = itertools.takewhile(lambda token: token != model.token_eos(), itertools.islice(stream, MOST_TOKENS))
        return str(model.detokenize(list(ids)).decode("utf-8", "ignore"))


async def _asked(host: TestNode) -> Json:
    async with host.client() as client:
        return await ask(client, messages=ASKED, max_tokens=MOST_TOKENS)


def test_the_command_line(api: Open, expected: str) -> None:
    done = api.node.run("ask", QUESTION, "-t", "0", "-n", str(MOST_TOKENS), "--json", within_s=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == expected


def test_openais_client(api: Open, expected: str) -> None:
    with openai.OpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0) as client:
        order: Json = {"model": MODEL, "messages": ASKED, "temperature": 0}
        result = client.chat.completions.create(**order, max_tokens=MOST_TOKENS)
        assert result.choices[0].message.content == expected
        assert result.choices[0].finish_reason == "length"
        parts = client.chat.completions.create(**order, max_tokens=MOST_TOKENS, stream=True)
        text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
        assert text == expected


def test_anthropics_client(api: Open, expected: str) -> None:
    with anthropic.Anthropic(api_key=api.key, base_url=api.base, max_retries=0) as client:
        more: Json = {"extra_body": {"temperature": 0}}
        result: Any = client.messages.create(model=MODEL, messages=ASKED, max_tokens=MOST_TOKENS, **more)
    assert "".join(block.text for block in result.content) == expected
    assert result.stop_reason == "max_tokens"


def test_ollamas_client(api: Open, expected: str) -> None:
    headers = {"Authorization": f"Bearer {api.key}"}
    with ollama.Client(host=api.base, headers=headers) as client:
        options = {"temperature": 0, "num_predict": MOST_TOKENS}
        result = client.chat(model=MODEL, messages=ASKED, options=options)
    assert result.message.content == expected
    assert result.done_reason == "length"


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, api: Open) -> Iterator[ChatPage]:
    """The Chat page of a window over the host, drawn into memory."""
    translators(qapp)
    made: Desk = desk(qapp, api.node.root)
    follow(qtbot, made.services, WITHIN_MS)
    shown = ChatPage(made.services)
    qtbot.addWidget(shown)
    shown.resize(1000, 700)
    shown.show()
    shown.shown()
    yield shown
    shown.close_history()
    made.services.pool.stop()
    made.services.lock.close()


def test_the_window(qtbot: QtBot, page: ChatPage, expected: str) -> None:
    page.open_chat(page.history.begin(model=MODEL).id)
    page._set_up(replace(page.chat, sampling={"temperature": 0.0}))
    page.composer.field.setPlainText(QUESTION)
    QTest.keyClick(page.composer.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not page.session.running, timeout=WITHIN_MS)
    question, answer = tree.path(page.chat)
    assert question.text == QUESTION
    assert answer.text.startswith(expected)
    assert answer.details[tree.MODEL] == MODEL
