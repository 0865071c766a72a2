"""The separation of a model's reasoning from its answer while both arrive. Pure.

A model's output is a sequence of pieces: reasoning, answer, and markers, which are hidden. Text is held back only
while it may be the beginning of a marker, and whitespace beside a marker until it is known that none follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from app.core.errors import BadInput
from backends.contract import MessageSigns, ReasoningFormat, Scalar

MARK = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
MOST_HEADER = 256  # maximum characters of a message's header; a longer one is not a header
PARAGRAPH = "\n\n"  # separates two blocks of reasoning, or two parts of an answer


class Kind(Enum):
    """The kind of a piece of output."""

    ANSWER = "answer"
    THOUGHT = "thought"
    HIDDEN = "hidden"  # markers, and the whitespace beside them
    TURN = "turn"  # no text: the answer so far was reasoning, which was ended without having been begun


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the output. `written` is the model's own text, `text` the text that is shown."""

    kind: Kind
    text: str
    written: str


@dataclass(frozen=True, slots=True)
class AnswerStart:
    """The state in which an answer begins, as shown by the end of its prompt."""

    in_thought: bool = False  # the prompt began a block of reasoning
    in_answer: bool = False  # an answer continues, or its reasoning was ended in the prompt
    goes_on: bool = False  # the open part already contains text
    passes_calls: bool = False  # pass messages to tools on unchanged, for the call finder


def answer_start(form: ReasoningFormat, prompt: str) -> AnswerStart:
    """Return whether a prompt ends with an open block of reasoning, or with one that was ended for the model."""
    end = prompt.rstrip()
    in_thought = end.endswith(form.begin.strip())
    closed = any(end.endswith(sign.strip()) for sign in (*form.end, *form.answer_begin))
    return AnswerStart(in_thought, not in_thought and closed)


def marker_tokens(form: ReasoningFormat) -> tuple[str, ...]:
    """Return the markers that may be single tokens. Control tokens among them are shown as text, to be found."""
    signs = [form.begin, *form.end, *form.answer_begin, *form.answer_end]
    if form.messages is not None:
        signs += [form.messages.start, form.messages.header_end, *form.messages.ends]
        signs += [form.messages.to_reader, "<|channel|>", "<|constrain|>"]
    return tuple(dict.fromkeys(mark for sign in signs for mark in MARK.findall(sign)))


class ThoughtSplitter:
    """Splits one answer into reasoning and text.

    controls: markers that are control tokens, which are never part of a text. calls: markers that begin a tool
    call. Such a marker on a line of its own ends reasoning that nothing else ended.
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
        """Return whether a thought is open."""
        return self._reader.in_thought

    @property
    def may_think(self) -> bool:
        """Return whether a thought is open, or may still begin before the answer does."""
        return self._reader.may_think

    def push(self, text: str) -> list[Part]:
        """Return the parts that are known now."""
        return self._reader.read(text, at_end=False)

    def flush(self) -> list[Part]:
        """Return the rest of the text, which was held back, at the end."""
        return self._reader.read("", at_end=True)


class _Place(Enum):
    BEGIN = "begin"  # nothing but whitespace has arrived
    THOUGHT = "thought"
    BETWEEN = "between"  # after reasoning: whitespace and markers of the answer
    ANSWER = "answer"


class _Tags:
    """Reasoning between two markers, before the answer."""

    def __init__(
        self, form: ReasoningFormat, where: AnswerStart, controls: frozenset[str], calls: tuple[str, ...]
    ) -> None:
        self._form, self._held = form, ""
        self._place = _Place.THOUGHT if where.in_thought else _Place.ANSWER if where.in_answer else _Place.BEGIN
        self._calls = tuple(f"\n{sign}" for sign in calls)
        self._n_thoughts = int(where.in_thought and where.goes_on)
        self._thought_begun = bool(self._n_thoughts)  # whether any reasoning but whitespace was reported
        self._has_answer = False  # whether any of the answer was reported
        self._parted = False  # whether the answer continues after more reasoning
        begin_control = bool(controls & set(MARK.findall(form.begin)))
        self._again = (form.begin,) if begin_control else ()  # a control token is never a quotation
        self._dropped = (*form.answer_end, *(form.answer_begin if controls else ()))
        # An end marker without a beginning counts only where reasoning was expected and none has come.
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
        """Read one piece. Return False if more text is needed first."""
        match self._place:
            case _Place.THOUGHT:
                return self._think(parts, at_end=at_end)
            case _Place.ANSWER:
                return self._answer(parts, at_end=at_end)
        return self._between(parts, at_end=at_end)

    def _between(self, parts: list[Part], *, at_end: bool) -> bool:
        """Continue before the answer, where a thought may begin."""
        text = self._held.lstrip()
        blanks = self._held[: len(self._held) - len(text)]
        opens = (self._form.begin, *self._form.answer_begin)
        for sign in opens:
            if text.startswith(sign):
                self._hide(parts, len(blanks) + len(sign))
                self._place = _Place.THOUGHT if sign == self._form.begin else _Place.BETWEEN
                self._thought_begun = False
                return True
        if not at_end and (not text or any(sign.startswith(text) for sign in opens)):
            return False
        if self._place is _Place.BETWEEN:
            self._hide(parts, len(blanks))
        self._place = _Place.ANSWER
        return bool(self._held)

    def _think(self, parts: list[Part], *, at_end: bool) -> bool:
        signs = (*self._form.end, *self._calls)
        at, sign = _first(self._held, signs)
        if at >= 0 and sign in self._calls:
            self._thought(parts, self._held[:at])
            self._hide(parts, self._held.index(sign) + 1)
            self._place = _Place.ANSWER
            return True
        if at >= 0:
            self._thought(parts, self._held[:at])
            self._hide(parts, self._held.index(sign) + len(sign))
            self._place, self._stray = _Place.BETWEEN, ()
            return True
        keep = 0 if at_end else max(_begun(self._held, sign) for sign in signs)
        self._thought(parts, self._held[: len(self._held) - keep])
        if at_end:
            self._hide(parts, len(self._held))
        return False

    def _thought(self, parts: list[Part], text: str) -> None:
        """Add a piece of reasoning without the whitespace around it. Whitespace at its end is held back."""
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
        parts.append(Part(Kind.THOUGHT, shown, bare))
        self._held = self._held[len(bare) :]

    def _answer(self, parts: list[Part], *, at_end: bool) -> bool:
        signs = (*self._again, *self._stray, *self._dropped, *self._controls)
        at, sign = _first(self._held, signs) if signs else (-1, "")
        if at < 0:
            keep = 0 if at_end or not signs else max(_begun(self._held, marker) for marker in signs)
            sure = self._held[: len(self._held) - keep]
            self._tell(parts, sure.rstrip() if self._again and not at_end else sure)
            return False
        rest = self._held[at:]
        if not at_end and any(len(marker) > len(rest) and marker.startswith(rest) for marker in signs):
            sure = self._held[:at]  # it may be the beginning of a longer one
            self._tell(parts, sure.rstrip() if self._again else sure)
            return False
        if sign in self._stray:
            return self._ended(parts, at, sign, at_end=at_end)
        again = sign in self._again
        self._tell(parts, self._held[:at].rstrip() if again else self._held[:at])
        self._hide(parts, len(self._held) - len(self._held.lstrip()) + len(sign) if again else len(sign))
        if again:
            self._place, self._thought_begun = _Place.THOUGHT, False
            self._parted = self._has_answer
        return True

    def _ended(self, parts: list[Part], at: int, sign: str, *, at_end: bool) -> bool:
        """Handle an end marker without a beginning: it ends reasoning if on a line of its own, or is only mentioned."""
        behind = self._held[at + len(sign) :]
        if not behind and not at_end:
            self._tell(parts, self._held[:at])
            return False
        own_line = self._line_begins(at) or behind[:1] in ("", "\n")
        self._tell(parts, self._held[:at])
        self._stray = ()
        if not own_line:
            return True
        self._hide(parts, len(sign))
        parts.append(Part(Kind.TURN, "", ""))
        self._place = _Place.BETWEEN
        return True

    def _line_begins(self, at: int) -> bool:
        return self._held[:at].endswith("\n") or (at == 0 and not self._has_answer)

    def _tell(self, parts: list[Part], text: str) -> None:
        if text:
            parts.append(Part(Kind.ANSWER, PARAGRAPH + text if self._parted else text, text))
            self._has_answer, self._parted = self._has_answer or not text.isspace(), False
            self._held = self._held[len(text) :]

    def _hide(self, parts: list[Part], n: int) -> None:
        if n:
            parts.append(Part(Kind.HIDDEN, "", self._held[:n]))
            self._held = self._held[n:]


TO = re.compile(r"\bto=([^\s<]+)")
CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
OWN = ("assistant", "user", "self", "all")  # recipients that are not tools


class _Messages:
    """Reasoning in messages of its own, each with a header that names its channel or its recipient."""

    def __init__(self, signs: MessageSigns, where: AnswerStart) -> None:
        self._signs, self._passes = signs, where.passes_calls
        self._held = ""
        self._kind: Kind | None = None  # the kind of the current message; None while its header is expected
        if where.in_thought:
            self._kind = Kind.THOUGHT
        elif where.in_answer:
            self._kind = Kind.ANSWER
        self._is_call = False  # passed on unchanged, including markers
        self._first = True  # the prompt has begun the first message's header
        self._begun = where.in_thought or where.in_answer  # whether any of this message was reported
        self._n = {Kind.THOUGHT: 0, Kind.ANSWER: int(where.in_answer)}

    @property
    def in_thought(self) -> bool:
        return self._kind is Kind.THOUGHT

    @property
    def may_think(self) -> bool:
        return self._kind is Kind.THOUGHT or (self._kind is None and not any(self._n.values()))

    def read(self, text: str, *, at_end: bool) -> list[Part]:
        self._held += text
        parts: list[Part] = []
        while self._header(parts, at_end=at_end) if self._kind is None else self._body(parts, at_end=at_end):
            pass
        return parts

    def _header(self, parts: list[Part], *, at_end: bool) -> bool:
        signs = self._signs
        head, sign, _ = self._held.partition(signs.header_end)
        if not sign:
            if not at_end and len(head) <= MOST_HEADER and (not self._first or self._may_be_header()):
                return False
            if not self._held:
                return False
            if at_end and self._may_be_header():  # cut off within a header
                self._hide(parts, len(self._held))
                return False
            self._open(Kind.ANSWER)  # there is no header
            return True
        recipients = [recipient for recipient in TO.findall(head) if recipient not in OWN]
        channels = CHANNEL.findall(head)
        self._is_call = bool(recipients) and self._passes
        is_thought = channels[-1:] == ["analysis"] or "to=self" in head or bool(recipients)
        self._open(Kind.ANSWER if self._is_call or not is_thought else Kind.THOUGHT)
        if self._is_call:
            self._tell(parts, len(head) + len(sign))
        else:
            self._hide(parts, len(head) + len(sign))
        return True

    def _may_be_header(self) -> bool:
        text = self._held.lstrip()
        begins = ("<|", "to=", "assistant", self._signs.start, self._signs.header_end)
        return any(text.startswith(beginning) or beginning.startswith(text) for beginning in begins)

    def _open(self, kind: Kind) -> None:
        self._kind, self._first, self._begun = kind, False, False

    def _body(self, parts: list[Part], *, at_end: bool) -> bool:
        signs = (*self._signs.ends, self._signs.start)
        at, sign = _first(self._held, signs)
        if at < 0:
            keep = 0 if at_end else max(_begun(self._held, marker) for marker in signs)
            self._tell(parts, len(self._held) - keep)
            return False
        self._tell(parts, at)
        if self._is_call and sign != self._signs.start:
            self._tell(parts, len(sign))
        elif sign != self._signs.start:
            self._hide(parts, len(sign))
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
            parts.append(Part(Kind.HIDDEN, "", self._held[:n]))
            self._held = self._held[n:]


def _first(text: str, signs: tuple[str, ...]) -> tuple[int, str]:
    """Return the place of the first of these markers in the text (-1 if there is none), and the marker."""
    places = [(at, -len(sign), sign) for sign in signs if sign and (at := text.find(sign)) >= 0]
    at, _, sign = min(places, default=(-1, 0, ""))
    return at, sign


def _begun(text: str, sign: str) -> int:
    """Return how many characters at the end of `text` may begin the marker."""
    most = min(len(sign) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(sign[:n])), 0)


@dataclass(frozen=True, slots=True)
class Thinking:
    """The requested reasoning of a model. The default leaves it to the model's template."""

    on: bool | None = None
    effort: str = ""  # by the models' own names: low, medium, high
    most_tokens: int | None = None  # maximum tokens of reasoning before it is ended
    must: bool = False  # refuse a model that cannot reason if `on` is requested


AS_IT_IS = Thinking()


def template_options(form: ReasoningFormat, thinking: Thinking) -> dict[str, Scalar]:
    """Return the template variables for this choice of thinking. Raises BadInput if the model does not support it."""
    options: dict[str, Scalar] = {}
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


ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _nearest(effort: str, known: tuple[str, ...]) -> str:
    """Return the effort known to a template that is nearest to the requested one."""
    if effort in known or effort not in ORDER or not known:
        return effort if effort in known or not known else known[-1]
    at = ORDER.index(effort)
    return min(known, key=lambda level: (abs(ORDER.index(level) - at), ORDER.index(level)))


def ended_early(form: ReasoningFormat, *, calls: bool) -> str:
    """Return the text that ends reasoning that has used up its tokens, up to the beginning of the answer."""
    if form.messages is not None:
        return form.end[0] + before_answer(form, calls=calls, thought=True)
    return f"\n{form.end[0]}{before_answer(form, calls=calls, thought=True)}"


def before_answer(form: ReasoningFormat, *, calls: bool, thought: bool) -> str:
    """Return the text before the words of an answer.

    calls: it may be a call instead, with its own header. thought: a block of reasoning has just ended.
    """
    if form.messages is None:
        return "".join(form.answer_begin[:1]) + "\n\n" if thought else ""
    start = form.messages.start + "assistant" if thought else ""
    return start + ("" if calls else form.messages.to_reader + form.messages.header_end)
