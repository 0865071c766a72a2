"""The format of a model's tool calls: found in a chat template by a worker, used by a node to read and constrain
answers.

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backends.contract import CodedError

ID = "\ue000"  # stands in signs for a call's id, which a model makes up
NUMBER = "\ue001"  # and this for the number of a call
NAME = "\ue002"  # and this for the name of the tool, where it is written twice


class TemplateFailed(CodedError):
    """The template could not be applied; the text says why."""


class Refused(TemplateFailed):
    """The template could not be applied to this chat; another one may work."""


class Objected(Refused):
    """The template itself says that it does not take this chat, in its author's words."""


class Payload(StrEnum):
    """The content between the signs of a call."""

    OBJECTS = "objects"  # {"name": …, "arguments": {…}}
    NAMED = "named"  # the tool's name between signs, then its arguments as a JSON object
    TAGGED = "tagged"  # the name, then each argument between signs of its own
    NESTED = "nested"  # as TAGGED, with arguments and what is in them as elements of XML
    PYTHON = "python"  # [name(key='value')]
    GEMMA = "gemma"  # call:name{key:<|"|>text<|"|>}
    HARMONY = "harmony"  # a message to functions.name


class Ids(StrEnum):
    """The kind of call ids that a chat template accepts."""

    ANY = "any"
    SHORT = "short"  # nine letters and digits
    COUNTED = "counted"  # functions.name:0


@dataclass(frozen=True, slots=True)
class PastCalls:
    """The way in which a chat template takes the earlier calls of a conversation."""

    ids: Ids = Ids.ANY
    is_single: bool = False  # it writes one call of a message at most
    takes_text: bool = False  # it takes their arguments as JSON text
    writes_calls: bool = True  # else they are written into the text of their message


@dataclass(frozen=True, slots=True)
class CallFormat:
    """Texts as the template writes them, blanks included. Several calls are `section lead … trail between lead … trail
    section_end`; a call is `head NAME named ARGUMENTS rest`."""

    payload: Payload
    section: str = ""
    lead: str = ""
    head: str = ""
    named: str = ""
    rest: str = ""
    trail: str = ""
    between: str = ""
    section_end: str = ""
    # OBJECTS: where the name and the arguments stand; no name_key: the name itself is the key of the arguments.
    name_key: str = "name"
    arguments_key: str = "arguments"
    # TAGGED: an argument is `key KEY keyed VALUE value_end`; `keyed` by the kind of the value, where that is told.
    key: str = ""
    keyed: tuple[tuple[str, str], ...] = ()
    value_end: str = ""
    other_begins: tuple[str, ...] = ()  # other markers that calls begin with
    prompt_marker: str = ""  # the first marker, where the prompt ends with it
    answer_marker: str = ""  # the text before a plain answer then
    past: PastCalls = PastCalls()
