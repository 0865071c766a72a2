"""The command `poolhouse ask`, which streams one answer."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli import terminal_text
from app.cli.node_calls import ask_node
from app.cli.options import HomeOption, JsonOption
from app.cli.output import Output
from app.cli.terminal_text import rate, seconds
from app.core.errors import BadInput, StageLost, Unreachable
from app.core.reasons import os_cause, said

if TYPE_CHECKING:
    from app.api.plans import Notice
    from app.api.responses import Answer, AnswerLine, Delta
    from app.client import NodeClient

Json = dict[str, Any]

MAX_SEED = (1 << 32) - 2  # llama.cpp chooses a random seed for the next higher value


def _not_nan(value: float) -> float:
    """Reject `nan`, which would pass every range check."""
    if math.isnan(value):
        raise typer.BadParameter("'nan' is not a number. Choose one from 0 to 10.")
    return value


TemperatureOption = Annotated[
    float,
    typer.Option(
        "--temperature",
        "-t",
        min=0,
        max=10,
        help="How random the answer is; 0 always picks the most likely token.",
        callback=_not_nan,
    ),
]
NoGuessesOption = Annotated[
    bool,
    typer.Option(
        "--no-guesses", help="Turn off speculative decoding (guessing tokens ahead), for example to compare speeds."
    ),
]


ThinkOption = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--think/--no-think",
        help="Whether the model thinks before it answers; by default, its chat template decides.",
        show_default=False,
    ),
]
ThinkTokensOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--think-tokens", min=0, max=1 << 20, help="The maximum number of tokens for thinking.", show_default=False
    ),
]


ToolsOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--tools",
        metavar="NAME",
        show_default=False,
        help="A tool server whose tools the model may call; each call is shown first. May be repeated.",
    ),
]


def ask(  # noqa: PLR0913  one for each option
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The question; `-` reads it from standard input.")],
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--model",
            "-m",
            help="The model to ask. If it is not loaded, it replaces the loaded one.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--system", help="The system message, which tells the model how to behave.", show_default=False),
    ] = None,
    picture: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            "--picture",
            "-p",
            help="A picture (PNG, JPEG, WebP or GIF) for a model that can look at pictures. May be repeated.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Send the prompt as it is, without the chat template.")] = False,
    temperature: TemperatureOption = 0.8,
    max_tokens: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--max-tokens", "-n", min=1, help="The maximum number of tokens in the answer.", show_default=False
        ),
    ] = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--seed", min=0, max=MAX_SEED, help="A number that makes the answer repeatable.", show_default=False
        ),
    ] = None,
    think: ThinkOption = None,
    think_tokens: ThinkTokensOption = None,
    no_guesses: NoGuessesOption = False,
    tools: ToolsOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the loaded model a question.

    It goes to another server only if you name a model of that server and have allowed it (`poolhouse upstream change
    NAME --chats`). If no model is loaded, the Guide answers, and the first line says so.
    """
    if raw and system is not None:
        raise typer.BadParameter("--system needs the chat template, which --raw leaves out.")
    if raw and (think is not None or think_tokens is not None):
        raise typer.BadParameter("Thinking needs the chat template, which --raw leaves out.")
    if raw and picture:
        raise typer.BadParameter("--picture needs the chat template, which --raw leaves out.")
    if raw and tools:
        raise typer.BadParameter("--tools needs the chat template, which --raw leaves out.")
    out = Output(as_json)
    body = {
        **_prompt_fields(_read_prompt(prompt), system, raw, picture or ()),
        "model": model,
        "max_tokens": max_tokens,
        "sampling": {"temperature": temperature, "seed": seed},
        **({"guesses": False} if no_guesses else {}),
        **({"think": think} if think is not None else {}),
        **({"think_tokens": think_tokens} if think_tokens is not None else {}),
    }
    answer, said_first = ask_node(home, lambda node: _answered(node, out, body, home, tools or ()))
    if as_json:
        out.json(answer_json(answer, said_first))
    else:
        _note_figures(out, answer, max_tokens)


async def _answered(
    node: NodeClient, out: Output, body: Json, home: Path | None, tools: Sequence[str]
) -> tuple[Answer, str]:
    if not tools:
        return await _continued(node, out, body)
    from app.cli.tool_rounds import answer_with_tools

    return await answer_with_tools(home, tools, out, body, lambda request: stream_answer(node, out, request))


async def _continued(node: NodeClient, out: Output, body: Json) -> tuple[Answer, str]:
    """Return the answer to a request. If a loss breaks it off, the person may let it continue where it was."""
    body, said_first = dict(body), ""
    question = {"role": "user", "content": body.get("prompt")}
    messages = list(body.get("messages") or [question])
    text, thought, n_tokens, max_tokens = "", "", 0, body.get("max_tokens")
    while True:
        written = _Written()
        try:
            answer, note = await stream_answer(node, out, body, written)
            return answer, said_first or note
        except (StageLost, Unreachable) as error:
            said_first = said_first or written.said_first
            text, thought = text + written.text, thought + written.thought
            n_tokens += written.n_tokens
            # a raw prompt has no messages, and without more text the same would happen again
            if not written.text or body.get("raw") or not out.can_ask:
                raise
            out.note(said(error))
            if not await asyncio.to_thread(typer.confirm, "Continue the answer from here?", default=True):
                raise typer.Exit(1) from None
            begun = {"role": "assistant", "content": text, **({"thought": thought} if thought else {})}
            body = {key: value for key, value in body.items() if key not in ("prompt", "raw")}
            body["messages"] = [*messages, begun]
            if max_tokens is not None:
                body["max_tokens"] = max(1, max_tokens - n_tokens)


def _read_prompt(prompt: str) -> str:
    if prompt != "-":
        text = prompt
    else:
        try:
            text = sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise BadInput("prompt_unreadable") from None
    if not text.strip():
        raise BadInput("prompt_missing")
    return text


def _prompt_fields(prompt: str, system: str | None, raw: bool, pictures: Sequence[Path]) -> Json:
    if system is None and not pictures:
        return {"prompt": prompt, "raw": raw}
    messages: list[Json] = [] if system is None else [{"role": "system", "content": system}]
    shown = {"pictures": [_picture(path) for path in pictures]} if pictures else {}
    return {"messages": [*messages, {"role": "user", "content": prompt, **shown}]}


def _picture(path: Path) -> str:
    """Return a small copy of a picture in base64, without the file's data about the place and the camera."""
    import base64

    from app.inference.worker.picture_reader import shrunk_picture

    try:
        data = path.expanduser().read_bytes()
    except OSError as error:
        raise BadInput("file_unreadable", path=str(path), why=os_cause(error)) from None
    return base64.b64encode(asyncio.run(shrunk_picture(data)).data).decode()


@dataclass
class _Written:
    """The part of an answer that has arrived."""

    text: str = ""
    thought: str = ""
    n_tokens: int = 0
    said_first: str = ""

    def note(self, delta: Delta) -> None:
        """Add the next part."""
        self.n_tokens += len(delta.token_ids)
        if delta.was_thought:
            self.text, self.thought = "", self.thought + self.text
        self.text, self.thought = self.text + delta.text, self.thought + delta.thought


async def stream_answer(
    node: NodeClient, out: Output, body: Json, written: _Written | None = None
) -> tuple[Answer, str]:
    """Return the answer, and a note about the model that gave it, or "" if there is no note.

    Without `--json`, the text is written as it arrives.
    """
    from app.api.responses import AnswerLine

    thinks, notices = False, _Notices(out)
    try:
        async with aclosing(node.stream("POST", "/ask", body, each=AnswerLine)) as lines:
            line, said_first = await _first_answer_line(lines, out)
            written = written or _Written()
            written.said_first = said_first
            while line.done is None:
                if line.recovery:
                    notices.show(line.recovery)
                if line.delta and line.delta.thought:
                    out.write_dim(line.delta.thought)
                    thinks = True
                text = line.delta.text if line.delta else ""
                if line.delta:
                    written.note(line.delta)
                if text and thinks:
                    out.write_dim("\n\n")
                    thinks = False
                if text and not out.as_json:
                    out.write(text)
                line = await anext(lines)
            return line.done, said_first
    except StopAsyncIteration:
        raise Unreachable("node_went_away") from None
    finally:
        out.end_line()  # also after Ctrl-C


def answer_json(answer: Answer, said_first: str) -> Json:
    import msgspec

    return {**msgspec.to_builtins(answer), **({"said_first": said_first} if said_first else {})}


class _Notices:
    """Shows the events while an answer recovers, one line per event rather than one per step."""

    def __init__(self, out: Output) -> None:
        self._out, self._states = out, set[str]()  # states of the current event that were shown

    def show(self, notice: Notice) -> None:
        """Show a notice if it is of interest to the user.

        The notices `lost` and `reconnecting` are not shown, because another notice follows. `continued` is not
        shown, because the answer makes it obvious.
        """
        state = notice.state
        if state == "continued":
            self._states.clear()
        is_shown = state in ("rebuilding", "leaving", "short") or notice.code == "recovery_reconnected"
        if is_shown and state not in self._states:
            self._states |= set() if state == "continued" else {state}
            self._out.note(notice.text or "")


async def _first_answer_line(lines: AsyncGenerator[AnswerLine, None], out: Output) -> tuple[AnswerLine, str]:
    """Show the loading progress if the model has to be loaded.

    Return the first line of the answer and the note about its model.
    """
    from app.cli.progress import show_progress

    said_first = ""
    with show_progress(out) as show:
        while True:
            line = await anext(lines)
            if line.by:
                said_first = line.by.text
                out.note(said_first)
            elif line.progress:
                show(line.progress)
            else:
                return line, said_first


def _note_figures(out: Output, answer: Answer, max_tokens: int | None) -> None:
    machines = len({stage.key for stage in answer.placement})
    shared = f" · {machines} machines" if machines > 1 else ""
    pause_s = sum(recovery.recovered_after_s for recovery in answer.recovered)
    pause = f", including a pause of {seconds(pause_s)}" if pause_s else ""
    n_tokens = answer.n_tokens
    if answer.finish_reason == "length":
        out.note(_cut_off(answer, max_tokens))
    out.note_dim(
        f"{terminal_text.name(answer.model)} · {n_tokens:,} tokens · first token after {seconds(answer.ttft_s)} · "
        f"{rate(answer.decode_tok_s)}{pause}{shared}"
    )
    if answer.guessed:
        depth = f", {answer.guessed / answer.guess_runs:.1f} at a time" if answer.guess_runs else ""
        drafted = f", {answer.drafted_right} of them by the draft model" if answer.drafted_right else ""
        gain = f" The answer was {answer.guess_gain:.2f} times as fast as without." if answer.guess_gain else ""
        out.note_dim(f"{answer.guessed_right} of {answer.guessed} guessed tokens were right{drafted}{depth}.{gain}")
    if answer.restored_s:
        n_kept, n_prompt = f"{answer.reused_tokens:,}", f"{answer.prompt_tokens:,}"
        out.note_dim(f"{n_kept} of {n_prompt} prompt tokens were remembered on disk.")
    for sentence in (*answer.notes, *answer.doubted):
        out.note(terminal_text.line(sentence))


def _cut_off(answer: Answer, max_tokens: int | None) -> str:
    """Return a sentence that names the limit at which the answer was cut off, and a remedy."""
    if answer.cut_by == "context":
        return (
            "The answer was cut off because the context is full. Load the model with a larger "
            "--context, or ask a shorter question."
        )
    if max_tokens is not None:
        return f"The answer was cut off at --max-tokens ({max_tokens:,})."
    n_tokens = answer.n_tokens
    return f"The answer was cut off after {n_tokens:,} tokens. A larger --max-tokens allows a longer one."
