"""The separation of a model's reasoning from its answer while both arrive.

The output is divided into reasoning, answer, and markers, which are hidden. Text is held back only while it may be the
beginning of a marker. Whitespace is held back until it is certain that no marker follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from app.core.errors import BadInput
from backends.contract import JsonScalar, MessageMarkers, ReasoningFormat

MARK = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
MOST_HEADER = 256  # maximum characters of a message's header; a longer one is not a header
PARAGRAPH = "\n\n"  # separates two blocks of reasoning, or two parts of an answer


class PartKind(Enum):
    """The kind of a piece of output."""

    ANSWER = "answer"
    THOUGHT = "thought"
    HIDDEN = "hidden"  # markers, and the whitespace next to them
    TURN = "turn"  # no text: the answer so far was reasoning whose beginning was not marked


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the output. `written` is the model's original text, and `text` is the text to show."""

    kind: PartKind
    text: str
    written: str


@dataclass(frozen=True, slots=True)
class AnswerStart:
    """The state in which an answer begins, as determined by the end of its prompt."""

    in_thought: bool = False  # the prompt began a block of reasoning
    in_answer: bool = False  # an answer is continued, or the prompt ended its reasoning
    has_text: bool = False  # the part in progress already contains text
    keeps_calls: bool = False  # messages to tools are passed on unchanged, for the call finder


def answer_start(form: ReasoningFormat, prompt: str) -> AnswerStart:
    """Return whether the end of a prompt has opened reasoning, closed it, or neither."""
    end = prompt.rstrip()
    in_thought = end.endswith(form.begin.strip())
    closed = any(end.endswith(marker.strip()) for marker in (*form.end, *form.answer_begin))
    return AnswerStart(in_thought, not in_thought and closed)


def marker_tokens(form: ReasoningFormat) -> tuple[str, ...]:
    """Return the markers that may be single tokens. If they are control tokens, the engine must pass them on."""
    markers = [form.begin, *form.end, *form.answer_begin, *form.answer_end]
    if form.messages is not None:
        markers += [form.messages.start, form.messages.header_end, *form.messages.ends]
        markers += [form.messages.to_reader, "<|channel|>", "<|constrain|>"]
    return tuple(dict.fromkeys(mark for marker in markers for mark in MARK.findall(marker)))


class ThoughtSplitter:
    """A splitter that separates one answer into reasoning and text.

    controls: markers that are control tokens, which are never part of a text. calls: markers that begin a tool call.
    Such a marker on a line of its own ends reasoning that has no end marker.
    """

    def __init__(
        self,
        form: ReasoningFormat,
        where: AnswerStart | None = None,
        controls: frozenset[str] = frozenset(),
        calls: tuple[str, ...] = (),
    ) -> None:
        where = where or AnswerStart()
        self._reader: _Tags | _Messages
        if form.messages is not None:
            self._reader = _Messages(form.messages, where)
        else:
            self._reader = _Tags(form, where, controls, calls)

    @property
    def in_thought(self) -> bool:
        """Return whether reasoning is in progress."""
        return self._reader.in_thought

    @property
    def may_think(self) -> bool:
        """Return whether reasoning is in progress, or may still begin before the answer."""
        return self._reader.may_think

    def push(self, text: str) -> list[Part]:
        """Process more output, and return the parts that are now certain."""
        return self._reader.read(text, at_end=False)

    def flush(self) -> list[Part]:
        """Return the parts that were still held back when the answer ended."""
        return self._reader.read("", at_end=True)


class _Place(Enum):
    BEGIN = "begin"  # nothing but whitespace has arrived
    THOUGHT = "thought"
    BETWEEN = "between"  # after reasoning: whitespace and markers of the answer
    ANSWER = "answer"


class _Tags:
    """A splitter for reasoning that precedes the answer and is enclosed in two markers."""

    def __init__(
        self, form: ReasoningFormat, where: AnswerStart, controls: frozenset[str], calls: tuple[str, ...]
    ) -> None:
        self._form, self._held = form, ""
        self._place = _Place.THOUGHT if where.in_thought else _Place.ANSWER if where.in_answer else _Place.BEGIN
        self._calls = tuple(f"\n{marker}" for marker in calls)
        self._n_thoughts = int(where.in_thought and where.has_text)
        self._thought_begun = bool(self._n_thoughts)  # whether any reasoning except whitespace was reported
        self._has_answer = False  # whether any part of the answer was reported
        self._parted = False  # whether the answer continues after more reasoning
        begin_control = bool(controls & set(MARK.findall(form.begin)))
        self._again = (form.begin,) if begin_control else ()  # a control token is never a mere mention
        self._dropped = (*form.answer_end, *(form.answer_begin if controls else ()))
        # An end marker without a beginning counts only if reasoning was expected and has not come.
        self._stray = () if where.in_answer or where.in_thought or form.is_habit else form.end
        self._controls = tuple(controls - {form.begin})

    @property
    def in_thought(self) -> bool:
        return self._place is _Place.THOUGHT

    @property
    def may_think(self) -> bool:
        return self._place in (_Place.THOUGHT, _Place.BEGIN)

    def read(self, text: str, *, at_end: bool) -> list[Part]:
        self._held += text
        parts: list[Part] = []
        while self._step(parts, at_end=at_end):
            pass
        return parts

    def _step(self, parts: list[Part], *, at_end: bool) -> bool:
        """Process one piece. Return False if more text is needed first."""
        match self._place:
            case _Place.THOUGHT:
                return self._think(parts, at_end=at_end)
            case _Place.ANSWER:
                return self._answer(parts, at_end=at_end)
        return self._between(parts, at_end=at_end)

    def _between(self, parts: list[Part], *, at_end: bool) -> bool:
        """Process text before the answer, where reasoning may begin."""
        text = self._held.lstrip()
        blanks = self._held[: len(self._held) - len(text)]
        opens = (self._form.begin, *self._form.answer_begin)
        for marker in opens:
            if text.startswith(marker):
                self._hide(parts, len(blanks) + len(marker))
                self._place = _Place.THOUGHT if marker == self._form.begin else _Place.BETWEEN
                self._thought_begun = False
                return True
        if not at_end and (not text or any(marker.startswith(text) for marker in opens)):
            return False
        if self._place is _Place.BETWEEN:
            self._hide(parts, len(blanks))
        self._place = _Place.ANSWER
        return bool(self._held)

    def _think(self, parts: list[Part], *, at_end: bool) -> bool:
        markers = (*self._form.end, *self._calls)
        at, marker = _first(self._held, markers)
        if at >= 0 and marker in self._calls:
            self._thought(parts, self._held[:at])
            self._hide(parts, self._held.index(marker) + 1)
            self._place = _Place.ANSWER
            return True
        if at >= 0:
            self._thought(parts, self._held[:at])
            self._hide(parts, self._held.index(marker) + len(marker))
            self._place, self._stray = _Place.BETWEEN, ()
            return True
        keep = 0 if at_end else max(_begun(self._held, marker) for marker in markers)
        self._thought(parts, self._held[: len(self._held) - keep])
        if at_end:
            self._hide(parts, len(self._held))
        return False

    def _thought(self, parts: list[Part], text: str) -> None:
        """Add a piece of reasoning without surrounding whitespace. Trailing whitespace is held back."""
        bare = text.rstrip()
        if not self._thought_begun:
            begin = len(bare) - len(bare.lstrip())
            if not bare:
                return
            self._hide(parts, begin)
            bare = bare[begin:]
        if not bare:
            return
        shown = bare
        if not self._thought_begun:
            self._thought_begun = True
            shown = PARAGRAPH + bare if self._n_thoughts else bare
            self._n_thoughts += 1
        parts.append(Part(PartKind.THOUGHT, shown, bare))
        self._held = self._held[len(bare) :]

    def _answer(self, parts: list[Part], *, at_end: bool) -> bool:
        markers = (*self._again, *self._stray, *self._dropped, *self._controls)
        at, marker = _first(self._held, markers) if markers else (-1, "")
        if at < 0:
            keep = 0 if at_end or not markers else max(_begun(self._held, marker) for marker in markers)
            sure = self._held[: len(self._held) - keep]
            self._tell(parts, sure.rstrip() if self._again and not at_end else sure)
            return False
        rest = self._held[at:]
        if not at_end and any(len(marker) > len(rest) and marker.startswith(rest) for marker in markers):
            sure = self._held[:at]  # the marker may be the beginning of a longer one
            self._tell(parts, sure.rstrip() if self._again else sure)
            return False
        if marker in self._stray:
            return self._ended(parts, at, marker, at_end=at_end)
        again = marker in self._again
        self._tell(parts, self._held[:at].rstrip() if again else self._held[:at])
        self._hide(parts, len(self._held) - len(self._held.lstrip()) + len(marker) if again else len(marker))
        if again:
            self._place, self._thought_begun = _Place.THOUGHT, False
            self._parted = self._has_answer
        return True

    def _ended(self, parts: list[Part], at: int, marker: str, *, at_end: bool) -> bool:
        """Process an end marker that has no matching start marker.

        It ends reasoning if it is on a line of its own. Otherwise, the text merely mentions it.
        """
        behind = self._held[at + len(marker) :]
        if not behind and not at_end:
            self._tell(parts, self._held[:at])
            return False
        own_line = self._line_begins(at) or behind[:1] in ("", "\n")
        self._tell(parts, self._held[:at])
        self._stray = ()
        if not own_line:
            return True
        self._hide(parts, len(marker))
        parts.append(Part(PartKind.TURN, "", ""))
        self._place = _Place.BETWEEN
        return True

    def _line_begins(self, at: int) -> bool:
        return self._held[:at].endswith("\n") or (at == 0 and not self._has_answer)

    def _tell(self, parts: list[Part], text: str) -> None:
        if text:
            parts.append(Part(PartKind.ANSWER, PARAGRAPH + text if self._parted else text, text))
            self._has_answer, self._parted = self._has_answer or not text.isspace(), False
            self._held = self._held[len(text) :]

    def _hide(self, parts: list[Part], n: int) -> None:
        if n:
            parts.append(Part(PartKind.HIDDEN, "", self._held[:n]))
            self._held = self._held[n:]


TO = re.compile(r"\bto=([^\s<]+)")
CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
NON_TOOL_RECIPIENTS = ("assistant", "user", "self", "all")  # recipients that are not tools


class _Messages:
    """A splitter for reasoning in separate messages, each with a header that names its channel or its recipient."""

    def __init__(self, markers: MessageMarkers, where: AnswerStart) -> None:
        self._markers, self._passes = markers, where.keeps_calls
        self._held = ""
        self._kind: PartKind | None = None  # the kind of the current message; None while its header is expected
        if where.in_thought:
            self._kind = PartKind.THOUGHT
        elif where.in_answer:
            self._kind = PartKind.ANSWER
        self._is_call = False  # a call is passed on unchanged, including its markers
        self._first = True  # the prompt wrote the beginning of the first header
        self._begun = where.in_thought or where.in_answer  # whether any of this message was reported
        self._n = {PartKind.THOUGHT: 0, PartKind.ANSWER: int(where.in_answer)}

    @property
    def in_thought(self) -> bool:
        return self._kind is PartKind.THOUGHT

    @property
    def may_think(self) -> bool:
        return self._kind is PartKind.THOUGHT or (self._kind is None and not any(self._n.values()))

    def read(self, text: str, *, at_end: bool) -> list[Part]:
        self._held += text
        parts: list[Part] = []
        while self._header(parts, at_end=at_end) if self._kind is None else self._body(parts, at_end=at_end):
            pass
        return parts

    def _header(self, parts: list[Part], *, at_end: bool) -> bool:
        markers = self._markers
        head, marker, _ = self._held.partition(markers.header_end)
        if not marker:
            if not at_end and len(head) <= MOST_HEADER and (not self._first or self._may_be_header()):
                return False
            if not self._held:
                return False
            if at_end and self._may_be_header():  # the answer was cut off within a header
                self._hide(parts, len(self._held))
                return False
            self._open(PartKind.ANSWER)  # the message has no header
            return True
        recipients = [recipient for recipient in TO.findall(head) if recipient not in NON_TOOL_RECIPIENTS]
        channels = CHANNEL.findall(head)
        self._is_call = bool(recipients) and self._passes
        is_thought = channels[-1:] == ["analysis"] or "to=self" in head or bool(recipients)
        self._open(PartKind.ANSWER if self._is_call or not is_thought else PartKind.THOUGHT)
        if self._is_call:
            self._tell(parts, len(head) + len(marker))
        else:
            self._hide(parts, len(head) + len(marker))
        return True

    def _may_be_header(self) -> bool:
        text = self._held.lstrip()
        begins = ("<|", "to=", "assistant", self._markers.start, self._markers.header_end)
        return any(text.startswith(beginning) or beginning.startswith(text) for beginning in begins)

    def _open(self, kind: PartKind) -> None:
        self._kind, self._first, self._begun = kind, False, False

    def _body(self, parts: list[Part], *, at_end: bool) -> bool:
        markers = (*self._markers.ends, self._markers.start)
        at, marker = _first(self._held, markers)
        if at < 0:
            keep = 0 if at_end else max(_begun(self._held, marker) for marker in markers)
            self._tell(parts, len(self._held) - keep)
            return False
        self._tell(parts, at)
        if self._is_call and marker != self._markers.start:
            self._tell(parts, len(marker))
        elif marker != self._markers.start:
            self._hide(parts, len(marker))
        self._kind, self._is_call = None, False
        return True

    def _tell(self, parts: list[Part], n: int) -> None:
        if not n:
            return
        assert self._kind is not None
        written, self._held = self._held[:n], self._held[n:]
        shown = written
        if not self._begun and not self._is_call:
            shown = PARAGRAPH + written if self._n[self._kind] else written
            self._n[self._kind] += 1
        self._begun = True
        parts.append(Part(self._kind, shown, written))

    def _hide(self, parts: list[Part], n: int) -> None:
        if n:
            parts.append(Part(PartKind.HIDDEN, "", self._held[:n]))
            self._held = self._held[n:]


def _first(text: str, markers: tuple[str, ...]) -> tuple[int, str]:
    """Return the position of the first of these markers in the text and the marker, or -1 and "" if there is none."""
    places = [(at, -len(marker), marker) for marker in markers if marker and (at := text.find(marker)) >= 0]
    at, _, marker = min(places, default=(-1, 0, ""))
    return at, marker


def _begun(text: str, marker: str) -> int:
    """Return how many trailing characters of `text` may be the beginning of the marker."""
    most = min(len(marker) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(marker[:n])), 0)


@dataclass(frozen=True, slots=True)
class Thinking:
    """The reasoning that a request asks for. By default, the model's template decides."""

    on: bool | None = None
    effort: str = ""  # as models name it: low, medium, high
    most_tokens: int | None = None  # the maximum number of reasoning tokens, after which reasoning is ended
    must: bool = False  # refuse a model that cannot reason if `on` is requested


TEMPLATE_DEFAULT = Thinking()


def template_options(form: ReasoningFormat, thinking: Thinking) -> dict[str, JsonScalar]:
    """Return the template variables for the requested reasoning. Raises BadInput if the model does not support it."""
    options: dict[str, JsonScalar] = {}
    if thinking.on is False:
        if form.switch_off is None and not form.is_habit and thinking.must:
            raise BadInput("thinking_always")
        return dict(form.switch_off or {})
    if thinking.on and form.is_habit and thinking.must:
        raise BadInput("thinking_never")
    if thinking.on or (thinking.effort and form.effort_option in form.switch_on):
        options |= form.switch_on
    if thinking.effort and form.effort_option:
        options |= form.switch_on
        options[form.effort_option] = _nearest(thinking.effort, form.efforts)
    return options


EFFORT_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _nearest(effort: str, known: tuple[str, ...]) -> str:
    """Return the template's effort level that is closest to the requested one."""
    if effort in known or effort not in EFFORT_ORDER or not known:
        return effort if effort in known or not known else known[-1]
    at = EFFORT_ORDER.index(effort)
    return min(known, key=lambda level: (abs(EFFORT_ORDER.index(level) - at), EFFORT_ORDER.index(level)))


def early_end(form: ReasoningFormat, *, calls: bool) -> str:
    """Return the text that ends reasoning at its token limit, up to the beginning of the answer."""
    if form.messages is not None:
        return form.end[0] + answer_prefix(form, calls=calls, thought=True)
    return f"\n{form.end[0]}{answer_prefix(form, calls=calls, thought=True)}"


def answer_prefix(form: ReasoningFormat, *, calls: bool, thought: bool) -> str:
    """Return the text that precedes the words of an answer.

    calls: whether the answer may be a call instead, which has its own header. thought: whether reasoning has just
    ended.
    """
    if form.messages is None:
        return "".join(form.answer_begin[:1]) + "\n\n" if thought else ""
    start = form.messages.start + "assistant" if thought else ""
    return start + ("" if calls else form.messages.to_reader + form.messages.header_end)
