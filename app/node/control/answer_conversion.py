"""Conversion of API requests to generation requests, and of answer parts to the lines of a stream."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from app.api import plans, requests, responses
from app.api.responses import Answer, AnsweredBy, AnswerLine, WaitingPlace
from app.catalog.shelf import GUIDE
from app.core.errors import BadInput, Reason
from app.core.planner.placement import Forecast, PlannedStage
from app.core.reasons import said, sentence_for
from app.core.recovery.recovery import Recovered
from app.core.tools.reasoning import Thinking
from app.gateway.api_request import parse_arguments
from app.inference.pipeline.completion import DEFAULT_MAX_TOKENS, THOUGHT, Delta, GenerationRequest, Summary
from app.inference.pipeline.pictures import Pictures
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.worker.tokenizer import local_time
from app.node.snapshot import describe_stage

# The parts of an answer: a load that precedes it, a notice that another model answers, the loss of a machine, a place
# in the line of a host, text, and the end.
AnswerPart = plans.Progress | AnsweredBy | plans.Notice | WaitingPlace | Delta | Answer


def generation_request(order: requests.Ask) -> GenerationRequest:
    """Return the generation request for an API request. Raises BadInput unless it contains exactly one prompt."""
    prompts = [order.prompt is not None, order.prompt_ids is not None, order.messages is not None]
    if sum(prompts) != 1:
        raise BadInput("prompt_unclear")
    messages, pictures = None, Pictures()
    if order.messages is not None:
        messages = [_template_message(message, pictures) for message in order.messages]
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
        pictures=pictures.files,
    )


def _with_pictures(message: requests.Message, pictures: Pictures) -> str:
    """Return the text of a message, with a marker for each picture before it. Raises BadInput."""
    if message.pictures and message.role != "user":
        raise BadInput("picture_role", role=message.role)
    return "".join(map(pictures.add, message.pictures)) + message.content


def _template_message(message: requests.Message, pictures: Pictures) -> dict[str, Any]:
    """Return a message in the form that chat templates expect. Tool arguments that are not a JSON object become
    {}.
    """
    written: dict[str, Any] = {"role": message.role, "content": _with_pictures(message, pictures)}
    if message.thought:
        written[THOUGHT] = message.thought
    if message.role == "tool":
        written["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": parse_arguments(call.arguments) or {}},
            }
            for call in message.tool_calls
        ]
    return written


def for_every_model(question: GenerationRequest) -> Callable[[object], Awaitable[GenerationRequest]]:
    """Return a function that returns this request for every model."""

    async def known(_: object) -> GenerationRequest:
        return question

    return known


def substitution_notice(named: str | None, model: str) -> str:
    """Return a notice if the answering model is not the requested one, or if no model was requested and the Guide
    answers. Otherwise return ""."""
    if not named:
        return sentence_for("guide_answers") if model == GUIDE else ""
    return "" if named.casefold() == model.casefold() else sentence_for("name_means", name=named, model=model)


async def answer_lines(work: AsyncGenerator[AnswerPart, None]) -> AsyncGenerator[AnswerLine, None]:
    """Convert each part of an answer to a line of the stream."""
    async with aclosing(work) as parts:
        async for part in parts:
            yield line_of(part)


def line_of(part: AnswerPart) -> AnswerLine:
    """Convert an answer part to a line of the stream. Log probabilities are left out, because only the gateway's APIs
    return them."""
    match part:
        case plans.Progress():
            return AnswerLine(progress=part)
        case AnsweredBy():
            return AnswerLine(by=part)
        case plans.Notice():
            return AnswerLine(recovery=part)
        case WaitingPlace():
            return AnswerLine(waiting=part)
        case Delta():
            ids = list(part.token_ids)
            return AnswerLine(delta=responses.Delta(part.text, ids, part.thought, part.was_thought, part.hidden_bytes))
        case Answer():
            return AnswerLine(done=part)


def part_of(line: AnswerLine) -> AnswerPart | None:
    """Convert a line of the stream back to an answer part. Return None for other lines, such as a queue position."""
    if (delta := line.delta) is not None:
        return Delta(
            delta.text,
            tuple(delta.token_ids),
            thought=delta.thought,
            hidden_bytes=delta.hidden_bytes,
            was_thought=delta.was_thought,
        )
    return line.progress or line.by or line.recovery or line.done


def guess_gain(summary: Summary) -> float | None:
    """Return how many times as fast guesses made an answer, or None if nothing was guessed or it is not known."""
    if not summary.guessed or not summary.guess_took_s:
        return None
    return round(summary.guess_plain_s / summary.guess_took_s, 3)


def describe_answer(
    summary: Summary,
    model: str,
    stages: Sequence[PlannedStage],
    expected: Forecast | None,
    doubted: Iterable[Reason] = (),
    *,
    too_small: bool = False,
) -> Answer:
    """Return the final line of an answer: its text, its measured figures, and the forecast for the same token
    counts.

    doubted: a reason for each machine that has been found to compute wrong results.
    too_small: whether the model is too small for an accurate forecast.
    """
    notes, doubts = [Reason(code) for code in summary.notes], list(doubted)
    return Answer(
        text=summary.text,
        thought=summary.thought,
        thought_tokens=summary.thought_tokens,
        thought_s=summary.thought_s,
        token_ids=list(summary.token_ids),
        prompt_tokens=summary.prompt_tokens,
        reused_tokens=summary.reused_tokens,
        before_s=summary.before_s,
        queued_s=summary.queued_s,
        ttft_s=summary.ttft_s,
        decode_tok_s=summary.decode_tok_s,
        guessed=summary.guessed,
        guessed_right=summary.guessed_right,
        guess_runs=summary.guess_runs,
        drafted_right=summary.drafted_right,
        guess_gain=guess_gain(summary),
        restored_s=summary.restored_s,
        finish_reason=summary.finish_reason,
        cut_by=summary.cut_by,
        stop=summary.stop,
        model=model,
        notes=[said(note) for note in notes],
        notes_facts=notes,
        placement=[describe_stage(stage) for stage in stages],
        predicted=_forecast_speed(expected, too_small) if expected else None,
        recoveries=len(summary.recoveries),
        recovered=[_describe_recovery(recovery) for recovery in summary.recoveries],
        stages=[_describe_work(stage, work) for stage, work in zip(stages, summary.stages, strict=True)],
        doubted=[said(doubt) for doubt in doubts],
        doubted_facts=doubts,
    )


def _forecast_speed(expected: Forecast, too_small: bool) -> responses.ForecastSpeed:
    return responses.ForecastSpeed(expected.ttft_s, expected.decode_tok_s, too_small)


def _describe_recovery(recovery: Recovered) -> responses.AnswerRecovery:
    return responses.AnswerRecovery(
        machine=recovery.machine,
        reason=said(recovery.why),
        reason_facts=recovery.why,
        detected_after_s=recovery.detected_after_s,
        recovered_after_s=recovery.recovered_after_s,
        left=recovery.left,
        others=recovery.others,
    )


def _describe_work(stage: PlannedStage, work: StageFigures) -> responses.StageFigures:
    return responses.StageFigures(
        machine=stage.name,
        first=stage.layers.first,
        last=stage.layers.last,
        busy_s=work.busy_s,
        wait_s=work.wait_s,
        bytes_out=work.bytes_out,
        bytes_in=work.bytes_in,
        steps=work.steps,
    )
