"""The completion of chats and bare prompts on a pipeline, which converts requests to tokens and tokens to text."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from app.core.errors import AppError, BadInput
from app.core.recovery.recovery import Notice, Recovered
from app.core.scheduler.requester import OWNER, Requester
from app.core.tools.call_markers import markers_of
from app.core.tools.reasoning import (
    TEMPLATE_DEFAULT,
    AnswerStart,
    Part,
    PartKind,
    Thinking,
    ThoughtSplitter,
    answer_prefix,
    answer_start,
    early_end,
    marker_tokens,
    template_options,
)
from app.core.tools.template_messages import for_template
from app.inference.pipeline.pictures import PicturePlacement, Vision, place_pictures
from app.inference.pipeline.sequence import Finish, PlacedRows, Request, Token
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.pipeline.untrusted_text import CHATML_MARKS, UntrustedText
from app.inference.worker.tokenizer import Detokenizer, Message, StopFinder, TextWorker, local_time
from backends.contract import GREEDY, CallFormat, JsonScalar, LocalTime, ReasoningFormat, Sampling
from backends.worker_orders import VocabularyOpened

MAX_STOPS = 8
MAX_STOP_CHARS = 256
DEFAULT_MAX_TOKENS = 1024
MOST_BEGINNINGS = 4096  # number of conversations whose start times are kept, for templates that state the date

THOUGHT = "reasoning_content"  # the field of an assistant message that contains its reasoning


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request for text. Exactly one of `messages`, `prompt` and `prompt_ids` is set. `prompt` is used verbatim."""

    messages: Sequence[Message] | None = None
    tools: tuple[dict[str, Any], ...] = ()  # the tools that the answer may call, for the chat template
    template_options: Mapping[str, JsonScalar] = field(
        default_factory=dict
    )  # additional variables of the chat template
    begun_at: LocalTime | None = None  # when this chat began, for templates that state the date
    prompt: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    sampling: Sampling = GREEDY
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    thinking: Thinking = TEMPLATE_DEFAULT  # how the model reasons before an answer in a chat
    conversation: str | None = None  # later requests of a conversation reuse the KV cache of their common beginning
    ignore_end: bool = False  # continue past end tokens, as benchmarks do
    request: str = ""  # the request's id, for logs
    requester: Requester = OWNER
    guesses: bool = True  # see Request.guesses
    signs: Mapping[int, bytes] = field(default_factory=dict)  # texts of control tokens that the answer may contain
    came_at: float = field(default_factory=time.monotonic)
    read: Callable[[int], None] | None = None  # see Request.read
    # called with the model's name, the rendered prompt of a chat and the texts of the model's control tokens
    on_prompt: Callable[[str, str, tuple[str, ...]], None] | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # files, by the markers in the messages (pictures.py)


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of an answer's text, and its tokens.

    If a token ends within a character, its text is delayed until the character is complete.
    """

    text: str
    token_ids: tuple[int, ...]
    likely: tuple[tuple[bytes, float], ...] = ()  # like Token.likely, with the bytes of each token
    thought: str = ""  # more of the reasoning before the answer
    # bytes generated before this text that are not part of it, such as reasoning and control tokens
    hidden_bytes: int = 0
    was_thought: bool = False  # whether all text before this turned out to be reasoning


@dataclass(frozen=True, slots=True)
class Summary:
    """The complete answer and its statistics, sent after the last Delta."""

    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    reused_tokens: int
    before_s: float  # from `came_at` to the pipeline: chat template and tokenization
    queued_s: float
    ttft_s: float
    decode_tok_s: float
    finish_reason: str  # "stop" or "length"
    stop: str | None  # the stop string that ended the answer, if any
    stages: tuple[StageFigures, ...]
    recoveries: tuple[Recovered, ...] = ()
    guessed: int = 0  # tokens whose positions were computed before the tokens were known
    guessed_right: int = 0  # how many of those guesses were right
    guess_runs: int = 0  # runs in which these tokens were guessed
    drafted_right: int = 0  # how many of the right guesses were made by a draft model
    guess_took_s: float = 0.0  # of decoding, while the time of a plain step was known
    guess_plain_s: float = 0.0  # what that would have taken without guesses
    restored_s: float = 0.0  # see RequestFigures.restored_s
    place: int = 0  # the pipeline of the model that finished the answer
    thought: str = ""
    thought_tokens: int = 0
    thought_s: float = 0.0  # from the first token to the end of the reasoning
    # reason codes that tell the user how the chat was changed for the model
    notes: tuple[str, ...] = ()
    cut_by: str | None = None  # why the reason is "length": "max_tokens", or "context" if the context is full


class TokenGenerator(Protocol):
    """A source of tokens: one pipeline, or several pipelines of one model."""

    def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]: ...


class Completer:
    """A service that answers requests with one model."""

    def __init__(
        self, text: TextWorker, pipeline: TokenGenerator, name: str = "", vision: Vision | AppError | None = None
    ) -> None:
        """Create a completer.

        vision: the model's ability to process pictures, the error that explains why it is not available, or None if the
            model has none.
        """
        self._text, self._name, self.vision = text, name, vision
        self._pipeline = pipeline
        self._control: dict[str, int | None] = {}  # ids of control tokens, cached because every request needs them
        self._beginnings = StartTimes()
        self._untrusted: UntrustedText | None = None  # once needed: it reads the whole list of control tokens

    async def answer(self, question: GenerationRequest) -> AsyncGenerator[Delta | Notice | Summary, None]:
        """Yield Deltas, Notices if a stage is lost, and finally one Summary.

        Closing the generator cancels the answer: use contextlib.aclosing. Raises BadInput, Busy or StageLost. Deltas
        that were yielded before an error remain valid.
        """
        _check(question)
        reader, request, notes = await self._begin(question)
        before_s = max(0.0, time.monotonic() - question.came_at)
        tally, ids = _Tally(), list[int]()
        finish: Finish | None = None
        while True:
            if reader.pause is not None:
                request, finish, is_over = await self._resumed(question, reader, request, ids, finish)
                for delta in reader.deltas((), ()):
                    yield tally.take(delta)
                if is_over:
                    break
            begun = len(ids)
            async with aclosing(self._pipeline.generate(request)) as stream:
                async for item in stream:
                    if isinstance(item, Finish):
                        finish = _joined(finish, item)
                        break
                    if isinstance(item, Notice):
                        yield item
                        continue
                    ids.append(item.id)
                    for delta in reader.deltas((item.id,), self._likely(item, reader)):
                        yield tally.take(delta)
            if reader.pause is None:
                break
            request = replace(request, ids=(*request.ids, *ids[begun:]))
        assert finish is not None
        reader.flush()
        for delta in reader.deltas((), ()):
            yield tally.take(delta)
        summary = _summary(tally, reader, ids, finish, before_s, question.max_tokens)
        yield replace(summary, notes=notes)

    async def count(self, text: str) -> int:
        """Return the number of tokens in a text. Raises BadInput or StageLost."""
        return len(await self._text.tokenize(text, bos=False))

    async def prompt_tokens(self, question: GenerationRequest) -> int:
        """Return the number of tokens in the prompt of a request. Raises the same errors as `answer`."""
        return len((await self._prompt(question)).ids)

    @property
    def reasoning(self) -> ReasoningFormat:
        """Return the format in which this model writes its reasoning."""
        return self._text.vocabulary.reasoning

    @property
    def vocabulary(self) -> VocabularyOpened:
        """Return the model's vocabulary and the capabilities of its chat template."""
        return self._text.vocabulary

    @property
    def call_format(self) -> CallFormat | None:
        """Return the format in which this model's chat template writes tool calls, or None if it is unknown."""
        return self._text.vocabulary.calls

    async def control_token(self, name: str) -> int | None:
        """Return the id of the control token with this name, or None if the vocabulary has no such token."""
        if name not in self._control:
            ids = await self._text.tokenize(name, special=True, bos=False)
            is_one = len(ids) == 1 and not self._piece(ids[0])
            self._control[name] = ids[0] if is_one else None
        return self._control[name]

    def _piece(self, token: int) -> bytes:
        pieces = self._text.pieces
        return pieces[token] if 0 <= token < len(pieces) else b""

    def _likely(self, token: Token, reader: TokenReader) -> tuple[tuple[bytes, float], ...]:
        """Return the log probabilities of a token and its alternatives. Sampled control tokens are shown as text."""
        return tuple(
            (self._piece(token_id) or (reader.sign(token_id) if not at else b""), log)
            for at, (token_id, log) in enumerate(token.likely)
        )

    async def _prompt(self, question: GenerationRequest) -> _Prompt:
        """Return the model's input and the state in which its answer begins."""
        if question.prompt_ids is not None:
            return _Prompt(question.prompt_ids, None)
        if question.prompt is not None:
            return _Prompt(await self._text.tokenize(question.prompt), None)
        seen = await self._seen(question.pictures) if question.pictures else {}
        if self._untrusted is None:
            self._untrusted = UntrustedText(self._text.vocabulary)
        cleaned = await self._untrusted.clean(question.messages or (), question.tools, question.template_options)
        prompt = await self._text.prompt(
            for_template(self.call_format, cleaned.messages),
            cleaned.tools,
            options={**cleaned.options, **template_options(self.reasoning, question.thinking)},
            begun_at=self._beginnings.of(question),
            apart=tuple(seen),
        )
        if question.on_prompt is not None and not seen:
            question.on_prompt(self._name, await self._without_bos(prompt.text), self._text.vocabulary.markers)
        ids, pictures = place_pictures(prompt, seen) if seen else (prompt.ids, ())
        said, thought = _begun(question.messages or ())
        if said or thought:
            where = AnswerStart(in_thought=not said, in_answer=bool(said), has_text=True)
        else:
            where = answer_start(self.reasoning, prompt.text)
        notes = [] if self._text.vocabulary.has_template else ["template_none"]
        notes += ["template_without_tools"] if "tools" in prompt.folded else []
        where = replace(where, keeps_calls=bool(question.tools))
        return _Prompt(ids, where, tuple(notes), "" if said else thought, pictures)

    async def _without_bos(self, text: str) -> str:
        """Return a rendered prompt without the token that the model's tokenizer adds before every text."""
        vocabulary = self._text.vocabulary
        if not vocabulary.adds_bos:
            return text
        for marker in vocabulary.markers:
            if text.startswith(marker) and await self.control_token(marker) == vocabulary.bos:
                return text.removeprefix(marker)
        return text

    async def _seen(self, files: Mapping[str, bytes]) -> dict[str, PicturePlacement]:
        """Return the tokens and rows that represent each picture in the prompt, by marker. Raises BadInput or
        StageLost.
        """
        if self.vision is None:
            raise BadInput("picture_model_blind", model=self._name)
        if isinstance(self.vision, AppError):
            raise self.vision
        seen, n_rows = dict[str, PicturePlacement](), 0
        for marker, data in files.items():
            picture = seen[marker] = PicturePlacement(await self.vision.see(data), self.vision)
            n_rows += picture.n_rows
            if n_rows >= self.vision.context:  # told before further pictures, each of which may take a minute
                raise BadInput("prompt_too_long", tokens=n_rows, context=self.vision.context)
            if picture.block_rows > self.vision.most_rows:
                rows, most = picture.block_rows, self.vision.most_rows
                raise BadInput("picture_rows", rows=rows, most=most, model=self._name)
        return seen

    async def _begin(self, question: GenerationRequest) -> tuple[TokenReader, Request, tuple[str, ...]]:
        prompt, sampling = await self._prompt(question), question.sampling
        signs, splitter, waits = dict(question.signs), None, False
        if prompt.where is not None:
            own = await self._signs()
            signs |= own
            # if tool calls must follow a grammar, they are generated after the reasoning
            calls = bool(question.tools) and not sampling.grammar
            splitter = self._splitter(prompt.where, own, calls=calls)
            waits = bool(sampling.grammar) and splitter.may_think and not self.reasoning.is_habit
        most = question.thinking.most_tokens
        if most is not None and prompt.thought:
            most = max(0, most - len(await self._text.tokenize(prompt.thought, bos=False)))
        marks = CHATML_MARKS if "template_none" in prompt.notes else ()
        reader = TokenReader(
            self._text.detokenizer(signs),
            question.stop,
            splitter,
            signs=signs,
            most_thought=most,
            waits=waits,
            ends=marks,
        )
        conversation = question.conversation
        if (waits or most is not None) and conversation is None:
            conversation = f"thought {secrets.token_hex(8)}"  # so that the parts of this answer share the KV cache
        request = Request(
            prompt.ids,
            replace(sampling, grammar="") if waits else sampling,
            question.max_tokens,
            () if question.ignore_end else self._text.vocabulary.end_tokens,
            conversation,
            reader.push,
            question.request,
            question.guesses,
            has_priority=question.requester == OWNER,
            read=question.read,
            pictures=prompt.pictures,
            kept_for=_kept_for(question),
        )
        return reader, request, prompt.notes

    async def _signs(self) -> dict[int, bytes]:
        """Return the texts of the control tokens that delimit reasoning, by token id."""
        signs = [(await self.control_token(mark), mark) for mark in marker_tokens(self.reasoning)]
        return {token: mark.encode() for token, mark in signs if token is not None}

    def _splitter(self, where: AnswerStart, signs: Mapping[int, bytes], *, calls: bool) -> ThoughtSplitter:
        form = self.call_format
        controls = frozenset(sign.decode() for sign in signs.values())
        call_signs = markers_of(form).begins if calls and form is not None else ()
        return ThoughtSplitter(self.reasoning, where, controls, call_signs)

    async def _resumed(
        self, question: GenerationRequest, reader: TokenReader, request: Request, ids: list[int], finish: Finish | None
    ) -> tuple[Request, Finish | None, bool]:
        """Return the request that continues an answer after its reasoning has ended or reached its token limit.

        The second value is `finish`, updated if no tokens are left. The last value is True if nothing remains to be
        generated. Tokens sampled after the reasoning are dropped if the grammar of the answer was not enforced yet.
        """
        calls, pause = bool(question.tools), reader.pause
        assert pause is not None
        dropped = len(ids) - reader.n_kept
        if dropped > 0:
            del ids[len(ids) - dropped :]
            request = replace(request, ids=request.ids[: len(request.ids) - dropped])
        if pause is Pause.SPENT:
            forced = early_end(self.reasoning, calls=calls)
        else:
            forced = answer_prefix(self.reasoning, calls=calls, thought=bool(ids))
        more = await self._text.tokenize(forced, special=True, bos=False) if forced else ()
        where = AnswerStart(in_answer=not (calls and self.reasoning.messages), keeps_calls=calls)
        reader.resume(forced, self._splitter(where, await self._signs(), calls=calls))
        ids += more
        left = question.max_tokens - len(ids)
        next_one = replace(request, ids=(*request.ids, *more), sampling=question.sampling, max_tokens=max(1, left))
        if left < 1 and finish is not None:
            return next_one, replace(finish, reason="length"), True
        return next_one, finish, False


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The model's input.

    `where` is the state in which the answer begins. It is None outside a chat, where reasoning is not separated.
    """

    ids: tuple[int, ...]
    where: AnswerStart | None
    notes: tuple[str, ...] = ()  # see Summary.notes
    thought: str = ""  # the reasoning so far, if the answer to be continued was cut off within it
    pictures: tuple[PlacedRows, ...] = ()


def _begun(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the text and the reasoning of the unfinished answer at the end of a chat. Both are "" if there is none."""
    last = messages[-1] if len(messages) > 1 else {"role": ""}
    if last["role"] != "assistant" or "tool_calls" in last:
        return "", ""
    return str(last["content"]), str(last.get(THOUGHT) or "")


def _joined(first: Finish | None, then: Finish) -> Finish:
    """Combine the statistics of the two parts of an answer."""
    if first is None:
        return then
    before, two = first.figures, then.figures
    rates = [part for part in (before, two) if part.decode_tok_s > 0]
    seconds = sum(part.answer_tokens / part.decode_tok_s for part in rates)
    figures = replace(
        two,
        prompt_tokens=before.prompt_tokens,
        reused_tokens=before.reused_tokens,
        answer_tokens=before.answer_tokens + two.answer_tokens,
        queued_s=before.queued_s + two.queued_s,
        ttft_s=before.ttft_s,
        decode_tok_s=sum(part.answer_tokens for part in rates) / seconds if seconds else 0.0,
        stages=_added(before.stages, two.stages),
        recoveries=(*before.recoveries, *two.recoveries),
        guessed=before.guessed + two.guessed,
        guessed_right=before.guessed_right + two.guessed_right,
        guess_runs=before.guess_runs + two.guess_runs,
        drafted_right=before.drafted_right + two.drafted_right,
        guess_took_s=before.guess_took_s + two.guess_took_s,
        guess_plain_s=before.guess_plain_s + two.guess_plain_s,
        restored_s=before.restored_s,
    )
    return replace(then, figures=figures)


def _added(earlier: tuple[StageFigures, ...], later: tuple[StageFigures, ...]) -> tuple[StageFigures, ...]:
    """Add up the stages' statistics for two parts of an answer.

    If the stages changed in between, return only the statistics of the second part.
    """
    if [stage.name for stage in earlier] != [stage.name for stage in later]:
        return later
    return tuple(
        StageFigures(
            after.name,
            before.steps + after.steps,
            before.busy_s + after.busy_s,
            before.wait_s + after.wait_s,
            before.bytes_out + after.bytes_out,
            before.bytes_in + after.bytes_in,
        )
        for before, after in zip(earlier, later, strict=True)
    )


class _Tally:
    """The accumulated text and reasoning of one answer."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thought: list[str] = []

    def take(self, delta: Delta) -> Delta:
        if delta.was_thought:
            self._thought += self._text
            self._text.clear()
        self._text.append(delta.text)
        self._thought.append(delta.thought)
        return delta

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def thought(self) -> str:
        return "".join(self._thought)


class StartTimes:
    """The start times of conversations whose clients do not send them, limited to the most recent conversations."""

    def __init__(self, most: int = MOST_BEGINNINGS) -> None:
        self._most = most
        self._known: OrderedDict[str, LocalTime] = OrderedDict()

    def of(self, question: GenerationRequest) -> LocalTime:
        """Return the start time of a conversation, which is the same for every turn.

        If it changed, the date at the beginning of the prompt could change too, and the whole prompt would have to be
        computed again. A conversation that consists only of its first message starts now, even if the same message was
        sent before.
        """
        if question.begun_at is not None or question.conversation is None:
            return question.begun_at or local_time()
        answered = any(message["role"] == "assistant" for message in question.messages or ())
        known = self._known.pop(question.conversation, None) if answered else None
        self._known[question.conversation] = known = known or local_time()
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return known


class Pause(Enum):
    """The reason why an answer is interrupted and then continued by another request."""

    SPENT = "spent"  # the reasoning has used up its tokens
    OVER = "over"  # the reasoning is over, and a grammar applies to the rest


class TokenReader:
    """A reader of an answer's tokens as they are sampled, so that a stop string ends the answer immediately.

    splitter: separates the reasoning from the answer, or None if there is no reasoning. Stop strings are searched for
        only in the answer.
    most_thought: the number of tokens after which the reasoning is cut off.
    waits: whether a grammar for the answer is enforced once the reasoning has ended.
    ends: texts that end the answer like an end token.
    """

    def __init__(
        self,
        detokenizer: Detokenizer,
        stops: Sequence[str],
        splitter: ThoughtSplitter | None = None,
        *,
        signs: Mapping[int, bytes] | None = None,
        most_thought: int | None = None,
        waits: bool = False,
        ends: Sequence[str] = (),
    ) -> None:
        self._detokenizer = detokenizer
        self._ends = tuple(end for end in ends if end not in stops)
        self._stops = StopFinder((*stops, *ends))
        self._splitter, self._signs = splitter, signs or {}
        self._most, self._waits = most_thought, waits
        self._parts: deque[tuple[Part, ...]] = deque()  # parts of each token whose deltas have not been delivered yet
        self._flushed: list[Part] = []
        self._began = 0.0
        self.n_thought = 0  # tokens of reasoning, including its control tokens
        self.n_kept = 0  # tokens to keep when the answer is continued by another request
        self._n = 0
        self.thought_s = 0.0
        in_thought = splitter is not None and splitter.in_thought
        self.pause = Pause.SPENT if in_thought and most_thought == 0 else None

    def sign(self, token: int) -> bytes:
        """Return the text that represents a control token."""
        return self._signs.get(token, b"")

    def push(self, token: int) -> bool:
        """Process a token. Return True if the answer ends with it or will be continued by another request."""
        self._n += 1
        raw = self._detokenizer.push(token)
        if self._splitter is None:
            self._parts.append(self._stopped([Part(PartKind.ANSWER, raw, raw)]))
            return self._stops.found
        self._began = self._began or time.monotonic()
        was_in = self._splitter.in_thought
        parts = self._splitter.push(raw)
        is_in = self._splitter.in_thought
        if was_in or is_in:
            self.n_thought += 1
            self.thought_s = time.monotonic() - self._began
        if self._waits and not self._splitter.may_think:
            self.pause = Pause.OVER
            parts = [part for part in parts if part.kind is not PartKind.ANSWER]
            self.n_kept = self._n if was_in else 0  # text in place of reasoning was generated without the grammar
        elif self._most is not None and is_in and raw and self.n_thought >= self._most:
            self.pause, self.n_kept = Pause.SPENT, self._n
        self._parts.append(self._stopped(parts))
        return self._stops.found or self.pause is not None

    def resume(self, forced: str, splitter: ThoughtSplitter) -> None:
        """Continue after text that was inserted on behalf of the model."""
        left: list[Part] = []
        if self._splitter is not None and self.pause is Pause.SPENT:
            left = [part for part in self._splitter.flush() if part.kind is PartKind.THOUGHT]
        self._flushed += [*left, Part(PartKind.HIDDEN, "", forced)]
        self._splitter, self.pause, self._waits, self._most = splitter, None, False, None
        self._n = 0

    @property
    def stop(self) -> str | None:
        """Return the requested stop string that ended the answer, or None."""
        return None if self._stops.match in self._ends else self._stops.match

    def flush(self) -> None:
        """Release the text that is still held back at the end of the answer."""
        raw = self._detokenizer.flush()
        if self._splitter is None:
            self._flushed += self._stopped([Part(PartKind.ANSWER, raw, raw)])
        else:
            self._flushed += self._stopped([*self._splitter.push(raw), *self._splitter.flush()])
        if rest := self._stops.flush():
            self._flushed.append(Part(PartKind.ANSWER, rest, rest))

    def deltas(self, token_ids: tuple[int, ...], likely: tuple[tuple[bytes, float], ...]) -> list[Delta]:
        """Return the deltas for the next token or, if there is no token, for the released text."""
        if token_ids:
            parts: Sequence[Part] = self._parts.popleft()
        else:
            parts, self._flushed = self._flushed, []
            if not parts:
                return []
        deltas, hidden = list[Delta](), 0
        for part in parts:
            hidden += len(part.written.encode()) - (len(part.text.encode()) if part.kind is PartKind.ANSWER else 0)
            if part.kind is PartKind.TURN:
                deltas.append(Delta("", (), hidden_bytes=hidden, was_thought=True))
                hidden = 0
            if part.kind in (PartKind.HIDDEN, PartKind.TURN) or not part.text:
                continue
            is_text = part.kind is PartKind.ANSWER
            text, thought = (part.text, "") if is_text else ("", part.text)
            deltas.append(Delta(text, (), (), thought, hidden))
            hidden = 0
        if hidden or not deltas:
            deltas.append(Delta("", (), hidden_bytes=hidden))
        deltas[0] = replace(deltas[0], token_ids=token_ids, likely=likely)
        return deltas

    def _stopped(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts without the text that a stop string removes or that may be the beginning of one."""
        shown = list[Part]()
        for part in parts:
            if part.kind is not PartKind.ANSWER:
                shown.append(part)
                continue
            added = len(part.text) - len(part.written)  # length of a paragraph break that was inserted before the text
            text = self._stops.push(part.text)
            shown.append(Part(PartKind.ANSWER, text, text[max(0, added) :]))
        return tuple(shown)


def _kept_for(question: GenerationRequest) -> str:
    """Return the scope of the kept prompts on disk that a request may use, or "" if it may use none.

    The owner's chats share one scope. Other requests use only prompts of their own conversation, because timing would
    otherwise reveal what another user of the same program has asked. Prompts of guests are never kept.
    """
    if question.conversation is None or question.requester.kind == "guest":
        return ""
    return "owner" if question.requester == OWNER else f"{question.requester.kind} {question.conversation}"


def _check(question: GenerationRequest) -> None:
    inputs = (question.messages, question.prompt, question.prompt_ids)
    if sum(value is not None for value in inputs) != 1:
        raise BadInput("prompt_unclear")
    if len(question.stop) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARS for stop in question.stop):
        raise BadInput("stops_too_many", most=MAX_STOPS, characters=MAX_STOP_CHARS)


def _summary(
    tally: _Tally, reader: TokenReader, ids: list[int], finish: Finish, before_s: float, max_tokens: int
) -> Summary:
    figures, cut_by = finish.figures, None
    if finish.reason == "length":
        cut_by = "max_tokens" if len(ids) >= max_tokens else "context"
    return Summary(
        text=tally.text,
        token_ids=tuple(ids),
        prompt_tokens=figures.prompt_tokens,
        reused_tokens=figures.reused_tokens,
        before_s=before_s,
        queued_s=figures.queued_s,
        ttft_s=figures.ttft_s,
        decode_tok_s=figures.decode_tok_s,
        finish_reason=finish.reason,
        cut_by=cut_by,
        stop=reader.stop,
        stages=figures.stages,
        recoveries=figures.recoveries,
        guessed=figures.guessed,
        guessed_right=figures.guessed_right,
        guess_runs=figures.guess_runs,
        drafted_right=figures.drafted_right,
        guess_took_s=figures.guess_took_s,
        guess_plain_s=figures.guess_plain_s,
        restored_s=figures.restored_s,
        place=figures.place,
        thought=tally.thought,
        thought_tokens=reader.n_thought,
        thought_s=reader.thought_s,
    )
