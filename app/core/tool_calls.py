"""How models call tools: found in what they write. Pure.

Styles are those of chat templates: "hermes" (also Qwen) writes <tool_call>{…}</tool_call>, "qwen_coder" (also Qwen 3.5)
and "glm" write arguments as tags between these signs, "kimi" <|tool_call_begin|>functions.name:0 and so on, "mistral"
[TOOL_CALLS][…], "ministral" (also Devstral) [TOOL_CALLS]name[ARGS]{…}, "llama3" nothing but
{"name": …, "parameters": {…}}, several of them after "; ".
"""

from __future__ import annotations

from app.core.tool_halves import begun_calls
from app.core.tool_marks import (
    ARGS,
    CALL,
    CALL_ARGUMENTS,
    CALL_END,
    CALL_ID,
    CLOSE,
    FUNCTION,
    FUNCTION_END,
    KEY,
    KEY_END,
    OPEN,
    PARAMETER_END,
    SECTION_ENDS,
    SECTIONS,
    TOOL_CALLS,
    VALUE,
    VALUE_END,
    Call,
    Cursor,
    Marked,
    Marks,
    Reading,
    Tools,
    args_calls,
    glm,
    hermes,
    json_calls,
    kimi,
    qwen_coder,
)

PYTHON = "<|python_tag|>"
MARKS: dict[str, Marks] = {"hermes": hermes, "qwen_coder": qwen_coder, "glm": glm, "kimi": kimi}
BEGINS: dict[str, tuple[str, ...]] = {
    "kimi": (*SECTIONS, CALL)
}  # those of the others begin with <tool_call>
SIGNS = {"mistral": TOOL_CALLS, "ministral": TOOL_CALLS, "llama3": PYTHON}
MAY_BE_CONTROL = {
    "hermes": (OPEN, CLOSE),
    "qwen_coder": (OPEN, CLOSE),
    "glm": (OPEN, CLOSE, KEY, KEY_END, VALUE, VALUE_END),
    "kimi": (*SECTIONS, *SECTION_ENDS, CALL, CALL_ARGUMENTS, CALL_END),
    "mistral": (TOOL_CALLS,),
    "ministral": (TOOL_CALLS, ARGS, CALL_ID),
    "llama3": (PYTHON,),
}

ENDS = (CLOSE, FUNCTION_END, PARAMETER_END, KEY_END, VALUE_END, CALL_END, *SECTION_ENDS)


class CallFinder:
    """Parts what a model writes into text and calls. What is no call of a tool that is there stays text."""

    def __init__(self, style: str, tools: Tools) -> None:
        self._style, self._tools = style, tools
        self._marks = MARKS.get(style)
        self._signs = BEGINS.get(style, (OPEN,)) if self._marks else (SIGNS[style],)
        if style == "qwen_coder":  # its models leave <tool_call> out at times
            self._signs += tuple(f"{FUNCTION}{name}>" for name in tools)
        self._held = ""  # not told yet: it may be part of a call, or blanks before one
        self._inside = False
        self._cursor = Cursor("")
        self._reading: Reading[Marked] | None = None  # of a call that may have begun
        self._begun = False  # something but blanks has come

    def push(self, text: str) -> tuple[str, list[Call]]:
        """The text that can be told now, and the calls that are whole."""
        self._held += text
        if self._marks is not None:
            return self._marked(self._marks, at_end=False)
        return self._to_the_end(), []

    def flush(self, *, is_cut: bool = False) -> tuple[str, list[Call]]:
        """What is left at the end of the answer. is_cut: it ended because it was long, perhaps within a call."""
        told, calls = "", list[Call]()
        has_begun = is_cut and (self._inside or self._reading is not None)
        tail = self._held[len(self._held) - _ending(self._held) :] if has_begun else ""
        self._held = held = self._held.removesuffix(tail)  # half a sign is no part of a call
        if self._marks is not None:
            told, calls = self._marked(self._marks, at_end=True)
        elif self._inside:
            calls = self._rest_of_the_answer()
            self._held = "" if calls else self._held
        rest, self._held = self._held, ""
        if has_begun and not calls:
            calls = begun_calls(self._style, held, self._tools)
            told, rest = ("", "") if calls else (told, rest + tail)
        return told + rest, calls

    def _marked(self, marks: Marks, *, at_end: bool) -> tuple[str, list[Call]]:
        told, calls = "", list[Call]()
        while True:
            if self._reading is not None:
                found = self._read_on(self._reading, at_end=at_end)
                if found is None:
                    return told, calls
                told += found.told
                calls += found.calls
                self._held, self._reading = found.rest, None
            start = self._start()
            if start < 0:
                return told + self._sure(), calls
            text = self._held[:start].rstrip()
            told, self._held = told + text, self._held[len(text) :]
            self._cursor = Cursor(self._held)
            self._reading = marks(self._cursor, self._tools)

    def _read_on(self, reading: Reading[Marked], *, at_end: bool) -> Marked | None:
        """What came of it; nothing while it waits for more."""
        self._cursor.text, self._cursor.at_end = self._held, at_end
        try:
            next(reading)
        except StopIteration as read:
            found: Marked = read.value
            return found
        return None

    def _to_the_end(self) -> str:
        """Mistral's and Llama's calls are the rest of the answer, once they have begun."""
        if self._inside:
            return ""
        start = self._start()
        if self._style == "llama3" and not self._begun and self._held.lstrip().startswith("{"):
            start = 0
        if start < 0:
            return self._sure()
        told, self._held = self._held[:start].rstrip(), self._held[start:]
        self._inside = True
        return told

    def _rest_of_the_answer(self) -> list[Call]:
        text = self._held.strip().removeprefix(self._signs[0])
        if self._style != "llama3" and (calls := args_calls(text, self._tools)):
            return calls
        return json_calls(text, self._tools)

    def _start(self) -> int:
        """Where the first sign stands; -1 for none."""
        return min((at for sign in self._signs if (at := self._held.find(sign)) >= 0), default=-1)

    def _sure(self) -> str:
        """All but blanks at the end, and what may be the beginning of a sign."""
        kept = max(_begun(self._held, sign) for sign in self._signs)
        sure = self._held[: len(self._held) - kept].rstrip()
        self._held = self._held[len(sure) :]
        self._begun = self._begun or bool(sure)
        return sure


def _ending(text: str) -> int:
    """How many characters at a text's end may be the beginning of a sign that ends something."""
    return max(_begun(text, sign) for sign in ENDS)


def _begun(text: str, sign: str) -> int:
    """How many characters at a text's end may be the beginning of a sign."""
    most = min(len(sign) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(sign[:n])), 0)
