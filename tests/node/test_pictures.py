"""Real nodes and a model that sees: import, load over two computers, questions with pictures by every way in."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import AppError
from tests.gateway.conftest import Open, opened
from tests.node.pool import TestNode, paired
from tests.vision.http_calls import post
from tests.vision.tiny_models import pixels, png, projector, text_model

Json = dict[str, Any]
CAT, DOG = png(pixels(1)), png(pixels(2))
QUESTION = "What is it?"
SETTINGS = {"temperature": 0}
SPLIT = {"gemma3": [2, 4, 2], "qwen2.5vl_merger": [1, 2, 1]}
FAMILY = {"gemma3": "gemma3", "qwen2.5vl_merger": "qwen2-5-vl"}


@dataclass(frozen=True)
class Household:
    host: TestNode
    other: TestNode
    api: Open
    models: Path


@pytest.fixture(scope="module", params=["gemma3", "qwen2.5vl_merger"])
def household(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    """The rows of the first kind see each other, and those of the second have positions in two dimensions."""
    folder = tmp_path_factory.mktemp("pictures")
    models = folder / "models"
    models.mkdir()
    text_model(request.param, FAMILY[request.param], models / "tiny-sees.gguf")
    projector(request.param, 32, models / "mmproj-tiny-sees-f16.gguf")
    with paired(folder, "den", "attic") as (host, other):
        host.work("/models", {"path": str(models / "tiny-sees.gguf")})
        host.work("/load", {"model": "tiny-sees", "split": SPLIT[request.param], "context": 512})
        yield Household(host, other, opened(host), models)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def ask(node: TestNode, *pictures: bytes, **more: Any) -> Json:
    message = {"role": "user", "content": QUESTION, "pictures": [b64(data) for data in pictures]}
    return node.work("/ask", {"messages": [message], "max_tokens": 8, "sampling": SETTINGS, "ignore_end": True, **more})


def log_probability(household: Household, picture: bytes) -> float:
    """The log probability of the first token of the answer, which depends on the picture."""
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(picture)}"}}
    body = {"messages": [{"role": "user", "content": [part]}], "temperature": 0, "max_tokens": 1, "logprobs": True}
    answer = post(household.api, "/v1/chat/completions", body)
    return float(answer["choices"][0]["logprobs"]["content"][0]["logprob"])


def test_a_model_with_its_projector_beside_it_is_said_to_see(household: Household) -> None:
    (model,) = [m for m in household.host.control("GET", "/models")["models"] if m["name"] == "tiny-sees"]
    assert model["vision"]
    assert model["projector"] == str(household.models / "mmproj-tiny-sees-f16.gguf")
    assert household.host.control("GET", "/status")["loaded"]["vision"]
    shown = household.host.run("models").stdout
    assert "tiny-sees (sees pictures)" in shown


def test_the_picture_decides_the_answer_and_equal_pictures_are_not_computed_again(household: Household) -> None:
    first = ask(household.host, CAT, conversation="one")
    assert first["prompt_tokens"] > 16 + 10
    again = ask(household.host, CAT, conversation="one")
    assert again["token_ids"] == first["token_ids"]
    assert again["reused_tokens"] == first["prompt_tokens"] - 1
    other = ask(household.host, DOG, conversation="one")
    assert other["reused_tokens"] < 16  # the picture is another one, although its placeholders look alike
    assert ask(household.host, DOG)["token_ids"] == other["token_ids"]
    assert abs(log_probability(household, CAT) - log_probability(household, DOG)) > 1e-3


def test_every_dialect_gives_the_same_answer(household: Household) -> None:
    expected = ask(household.host, CAT, ignore_end=False)["text"]
    assert expected
    url = f"data:image/png;base64,{b64(CAT)}"
    sampling: Json = {"model": "tiny-sees", "temperature": 0, "max_tokens": 8}
    openai = post(household.api, "/v1/chat/completions", {**sampling, "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": QUESTION}]}]})  # fmt: skip
    source = {"type": "base64", "media_type": "image/png", "data": b64(CAT)}
    anthropic = post(household.api, "/v1/messages", {**sampling, "messages": [{"role": "user", "content": [
        {"type": "image", "source": source}, {"type": "text", "text": QUESTION}]}]})  # fmt: skip
    options = {"temperature": 0, "num_predict": 8}
    of_ollama: Json = {"model": "tiny-sees", "stream": False, "options": options}
    chat = post(household.api, "/api/chat", {**of_ollama, "messages": [
        {"role": "user", "content": QUESTION, "images": [b64(CAT)]}]})  # fmt: skip
    generate = post(household.api, "/api/generate", {**of_ollama, "prompt": QUESTION, "images": [b64(CAT)]})
    responses = post(household.api, "/v1/responses", {
        "model": "tiny-sees", "temperature": 0, "max_output_tokens": 8, "input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": url}, {"type": "input_text", "text": QUESTION}]}]})  # fmt: skip
    texts = [
        openai["choices"][0]["message"]["content"],
        anthropic["content"][0]["text"] if anthropic["content"] else "",
        chat["message"]["content"],
        generate["response"],
        "".join(part["text"] for item in responses["output"] for part in item.get("content", ())),
    ]
    assert texts == [expected] * 5
    shown = post(household.api, "/api/show", {"model": "tiny-sees"})
    assert "vision" in shown["capabilities"]


def test_the_command_line_asks_about_a_file(household: Household, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(CAT)
    done = household.host.run("ask", QUESTION, "--picture", str(tmp_path / "cat.png"), "-t", "0", "-n", "8", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["prompt_tokens"] == ask(household.host, CAT)["prompt_tokens"]
    (tmp_path / "no.png").write_bytes(b"no picture")
    refused = household.host.run("ask", QUESTION, "--picture", str(tmp_path / "no.png"))
    assert refused.returncode != 0
    assert "not a PNG, JPEG, WebP or GIF file" in refused.stderr


def test_a_question_to_another_computer_sends_the_picture_to_the_one_that_answers(household: Household) -> None:
    answer = ask(household.other, CAT, model="tiny-sees@den")
    assert answer["token_ids"] == ask(household.host, CAT)["token_ids"]
    (shared,) = household.other.control("GET", "/models")["shared"]
    assert shared["vision"]


async def test_a_lender_that_is_killed_in_the_answer_costs_no_word(household: Household) -> None:
    message = {"role": "user", "content": QUESTION, "pictures": [b64(CAT), b64(DOG)]}
    order: Json = {"messages": [message], "max_tokens": 300, "sampling": SETTINGS, "ignore_end": True}
    undisturbed = household.host.work("/ask", order)
    lenders_worker = await household.other.one_worker()
    parts: list[Json] = []
    async with household.host.client() as client, aclosing(client.stream("POST", "/ask", order)) as lines:
        async for line in lines:
            if "delta" in line and lenders_worker.is_running():
                lenders_worker.kill()
            parts.append(line)
    done = parts[-1]["done"]
    assert done["token_ids"] == undisturbed["token_ids"]
    assert done["recoveries"] == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([{"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}], "doesn't fetch pictures"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,????"}}], "damaged or incomplete"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}], "not a PNG, JPEG"),
        ([{"type": "input_audio", "input_audio": {}}], "only text and pictures"),
    ],
)
def test_other_contents_are_refused_with_one_sentence(household: Household, content: Json, sentence: str) -> None:
    refused = post(household.api, "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]}, 400)
    assert sentence in refused["error"]["message"]


def test_a_model_without_eyes_says_so(household: Household) -> None:
    content: list[Json] = [{"type": "image_url", "image_url": {"url": f"data:;base64,{b64(CAT)}"}}]
    message: Json = {"role": "user", "content": content}
    system: Json = {"role": "system", "content": content}
    refused = post(household.api, "/v1/chat/completions", {"messages": [system, message]}, 400)
    assert (
        "Only the user's messages may contain pictures, but this message is from the system"
        in refused["error"]["message"]
    )
    many = {"role": "user", "content": content * 17}
    refused = post(household.api, "/v1/chat/completions", {"messages": [many]}, 400)
    assert "17 pictures" in refused["error"]["message"]


def test_a_projector_is_attached_later_and_forgotten_with_its_model(household: Household, tmp_path: Path) -> None:
    path = tmp_path / "blind.gguf"
    text_model("idefics3", "llama", path)
    added = household.host.work("/models", {"path": str(path)})["model"]
    assert not added["vision"]
    with pytest.raises(AppError) as refused:
        ask(household.host, CAT, model="blind")
    assert refused.value.reason.code == "picture_model_blind"
    eyes = projector("idefics3", 32, tmp_path / "mmproj.gguf")
    assert household.host.work("/models", {"path": str(eyes)})["model"]["vision"]
    household.host.control("POST", "/unload", {"model": "blind"})  # it sees from its next load on
    answer = ask(household.host, CAT, model="blind")
    assert answer["model"] == "blind"
    household.host.control("POST", "/unload", {"model": "blind"})
    household.host.control("DELETE", "/models/blind")
    again = household.host.work("/models", {"path": str(shutil.copy(path, tmp_path / "elsewhere.gguf"))})["model"]
    assert again["vision"]  # the projector lies beside it


def test_a_projector_that_is_gone_or_broken_is_told_and_the_model_still_answers(
    household: Household, tmp_path: Path
) -> None:
    text_model("idefics3", "llama", tmp_path / "other.gguf")
    eyes = projector("idefics3", 32, tmp_path / "mmproj-other.gguf")
    assert household.host.work("/models", {"path": str(tmp_path / "other.gguf"), "name": "other"})["model"]["vision"]
    whole = eyes.read_bytes()
    for data, code in ((None, "projector_gone"), (whole[:-4000], "projector_unusable")):
        eyes.unlink(missing_ok=True)
        if data is not None:
            eyes.write_bytes(data)
        loaded = household.host.work("/load", {"model": "other", "context": 256})["loaded"]
        assert not loaded["vision"]
        assert loaded["blind_reason_facts"]["code"] == code
        assert str(loaded["blind_reason"]).startswith("The projector (mmproj) of other ")
        assert answers_text(household)
        with pytest.raises(AppError) as refused:
            ask(household.host, CAT)
        assert refused.value.reason.code == code


def test_a_projector_that_ends_its_process_ends_that_question_alone(household: Household, tmp_path: Path) -> None:
    text_model("idefics3", "llama", tmp_path / "hostile.gguf")
    eyes = projector("idefics3", 32, tmp_path / "mmproj-hostile.gguf")
    eyes.write_bytes(eyes.read_bytes().replace(b"v.blk.0.attn_q", b"v.blk.0.attn_x"))  # llama.cpp reads it all the same
    household.host.work("/models", {"path": str(tmp_path / "hostile.gguf"), "name": "hostile"})
    assert household.host.work("/load", {"model": "hostile", "context": 256})["loaded"]["vision"]
    for _ in range(2):
        with pytest.raises(AppError) as ended:
            ask(household.host, CAT)
        assert ended.value.reason.code == "picture_failed"
        assert answers_text(household)


def answers_text(household: Household) -> bool:
    message = {"role": "user", "content": QUESTION}
    return bool(household.host.work("/ask", {"messages": [message], "max_tokens": 2})["token_ids"])


def test_pictures_that_fill_the_context_are_refused_before_all_are_looked_at(household: Household) -> None:
    household.host.work("/load", {"model": "tiny-sees", "context": 64})
    pictures = [png(pixels(seed)) for seed in range(20, 28)]
    with pytest.raises(AppError) as refused:
        ask(household.host, *pictures)
    assert refused.value.reason.code == "prompt_too_long"
    assert refused.value.reason.number("tokens") < 8 * (12 + 2)  # those of some of the eight
