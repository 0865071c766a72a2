"""Conversion of a request into a question, and of an answer into JSON."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from app.api import requests
from app.catalog.shelf import GUIDE
from app.core.errors import BadInput, Reason
from app.core.planner.placement import Forecast, PlannedStage
from app.core.reasons import in_words, with_reason, with_reasons
from app.core.tools.reasoning import Thinking
from app.inference.pipeline.completion import DEFAULT_MAX_TOKENS, THOUGHT, Delta, GenerationRequest, Summary
from app.inference.worker.tokenizer import local_time
from app.node.snapshot import describe_stage

Json = dict[str, Any]

if TYPE_CHECKING:
    from app.gateway.upstreams.upstreams import UpstreamChoice


def question_of(order: requests.Ask) -> GenerationRequest:
    """Return the question in a request. Raises BadInput unless it has exactly one prompt."""
    prompts = [order.prompt is not None, order.prompt_ids is not None, order.messages is not None]
    if sum(prompts) != 1:
        raise BadInput("prompt_unclear")
    messages = None
    if order.messages is not None:
        messages = [
            {"role": m.role, "content": m.content, **({THOUGHT: m.thought} if m.thought else {})}
            for m in order.messages
        ]
    elif order.prompt is not None and not order.raw:
        messages = [{"role": "user", "content": order.prompt}]
    return GenerationRequest(
        messages=messages,
        prompt=order.prompt if order.raw else None,
        prompt_ids=tuple(order.prompt_ids) if order.prompt_ids is not None else None,
        sampling=order.sampling.sampling(chance=secrets.randbelow(1 << 31)),
        stop=tuple(order.stop),
        conversation=order.conversation,
        begun_at=None if order.begun_at is None else local_time(order.begun_at),
        ignore_end=order.ignore_end,
        guesses=order.guesses,
        max_tokens=order.max_tokens or DEFAULT_MAX_TOKENS,
        thinking=Thinking(order.think, order.effort, order.think_tokens, must=True),
    )


def always(question: GenerationRequest) -> Callable[[object], Awaitable[GenerationRequest]]:
    """Return a function that gives the same question to every model."""

    async def known(_: object) -> GenerationRequest:
        return question

    return known


def by_another(named: str | None, model: str) -> str:
    """Return a notice if another model than the named one answers, or if the Guide answers because none was named."""
    if not named:
        return in_words("guide_answers") if model == GUIDE else ""
    return "" if named.casefold() == model.casefold() else in_words("name_means", name=named, model=model)


async def kept_here(
    work: AsyncGenerator[Json, None], model: str, serving: Callable[[str], UpstreamChoice | None]
) -> AsyncGenerator[Json, None]:
    """Yield the lines of an answer. Raises the errors of `work`.

    If only an upstream has the model, raise an error that says so, because text written in this app is never sent
    to an upstream.
    """
    try:
        async with aclosing(work) as lines:
            async for line in lines:
                yield line
    except BadInput as error:
        there = serving(model) if error.reason.code == "model_unknown" else None
        if there is None:
            raise
        raise BadInput("model_elsewhere", name=model, upstream=there.name) from None


def delta_json(delta: Delta) -> Json:
    """Return the line of a delta. `likely` contains bytes, so such a line never becomes JSON; it is present only on
    request."""
    answer: Json = {"text": delta.text, "token_ids": list(delta.token_ids)}
    if delta.thought:
        answer["thought"] = delta.thought
    if delta.was_thought:
        answer["was_thought"] = True
    if delta.hidden_bytes:
        answer["hidden_bytes"] = delta.hidden_bytes
    return {"delta": answer | {"likely": delta.likely} if delta.likely else answer}


def answer_json(summary: Summary, model: str, stages: Sequence[PlannedStage], expected: Forecast | None) -> Json:
    """Return the end of an answer, with its figures and the forecast for exactly this number of tokens."""
    return {
        "text": summary.text,
        "thought": summary.thought,
        "thought_tokens": summary.thought_tokens,
        "thought_s": summary.thought_s,
        "token_ids": list(summary.token_ids),
        "prompt_tokens": summary.prompt_tokens,
        "reused_tokens": summary.reused_tokens,
        "before_s": summary.before_s,
        "queued_s": summary.queued_s,
        "ttft_s": summary.ttft_s,
        "decode_tok_s": summary.decode_tok_s,
        "guessed": summary.guessed,
        "guessed_right": summary.guessed_right,
        "finish_reason": summary.finish_reason,
        "cut_by": summary.cut_by,
        "stop": summary.stop,
        "model": model,
        **with_reasons("notes", map(Reason, summary.notes)),
        "placement": [describe_stage(stage) for stage in stages],
        "predicted": {"ttft_s": expected.ttft_s, "decode_tok_s": expected.decode_tok_s} if expected else None,
        "recoveries": len(summary.recoveries),
        "recovered": [
            {
                "machine": recovery.machine,
                **with_reason("reason", recovery.why),
                "detected_after_s": recovery.detected_after_s,
                "recovered_after_s": recovery.recovered_after_s,
                "left": recovery.left,
                "with": recovery.others,
            }
            for recovery in summary.recoveries
        ],
        "stages": [
            {
                "machine": stage.name,
                "first": stage.layers.first,
                "last": stage.layers.last,
                "busy_s": figures.busy_s,
                "wait_s": figures.wait_s,
                "bytes_out": figures.bytes_out,
                "bytes_in": figures.bytes_in,
                "steps": figures.steps,
            }
            for stage, figures in zip(stages, summary.stages, strict=True)
        ],
    }
