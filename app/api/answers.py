"""Answers to questions, and to requests about the household."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from app.api.plans import LoadedEmbedder, LoadedModel, Notice, Progress, Stage
from app.api.snapshot import Machine, MachineRef, Stranger
from app.core.errors import Fact, Reason

T = TypeVar("T")

# A question: the lines of `POST /ask`


class AnsweredBy(msgspec.Struct, frozen=True):
    """The model that answers if it is not the one that was named. `text` explains that to the person."""

    model: str
    text: str = ""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The next piece of an answer. `was_thought`: everything before it was a thought, not text."""

    text: str
    token_ids: list[int]
    thought: str = ""
    was_thought: bool = False
    hidden_bytes: int = 0


class ForecastSpeed(msgspec.Struct, frozen=True):
    """The forecast speed of an answer."""

    ttft_s: float = 0.0
    decode_tok_s: float = 0.0


class AnswerRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of a machine during an answer."""

    machine: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None
    detected_after_s: float = 0.0
    recovered_after_s: float = 0.0
    left: bool = False  # it left on purpose
    others: str = msgspec.field(name="with", default="")  # names of the machines that took over its layers


class StageFigures(msgspec.Struct, frozen=True):
    """The work of one stage for an answer. `machine` is its ID or its name."""

    machine: str
    first: int = 0
    last: int = 0
    busy_s: float = 0.0
    wait_s: float = 0.0
    bytes_out: int = 0
    bytes_in: int = 0
    steps: int = 0


class AnswerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The text of an answer, and the time and tokens it took."""

    text: str = ""
    thought: str = ""
    thought_tokens: int = 0
    thought_s: float = 0.0
    token_ids: list[int] = []
    prompt_tokens: int = 0
    reused_tokens: int = 0  # prompt tokens found in the KV cache
    before_s: float = 0.0  # until the first tokens were computed
    queued_s: float = 0.0
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    guessed: int = 0
    guessed_right: int = 0


class Answer(AnswerFigures, frozen=True, kw_only=True):
    """A finished answer."""

    finish_reason: str | None = None
    cut_by: str | None = None
    stop: str | None = None
    model: str = ""
    notes: list[str] = []
    notes_facts: list[Reason] = []
    placement: list[Stage] = []
    predicted: ForecastSpeed | None = None
    recoveries: int = 0
    recovered: list[AnswerRecovery] = []
    stages: list[StageFigures] = []
    doubted: list[str] = []  # sentences about machines whose computations were wrong
    doubted_facts: list[Reason] = []


class SentError(msgspec.Struct, frozen=True):
    """An error as the node sends it."""

    kind: str
    code: str = ""
    facts: dict[str, Fact] = {}
    message: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """Answer to a request that failed."""

    error: SentError


class Nothing(msgspec.Struct, frozen=True):
    """Answer of routes that return nothing."""


class AnswerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of an answer; exactly one field is set."""

    progress: Progress | None = None  # of a load that precedes the answer
    by: AnsweredBy | None = None
    recovery: Notice | None = None
    delta: Delta | None = None
    done: Answer | None = None
    error: SentError | None = None


class ProgressLine(msgspec.Struct, frozen=True):
    """A progress line of other long work."""

    progress: Progress


class DoneLine(msgspec.Struct, Generic[T], frozen=True):
    """The last line of other long work, with its result."""

    done: T


class AnswerKeys(msgspec.Struct, frozen=True):
    """Answer of `GET /answers`: the keys of answers that can be followed."""

    answers: list[str] = []


class TokenCount(msgspec.Struct, frozen=True):
    """Answer of `POST /tokens`."""

    tokens: int = 0


class Loaded(msgspec.Struct, frozen=True):
    """Answer of `POST /load` for a language model."""

    loaded: LoadedModel


class LoadedEmbedderAnswer(msgspec.Struct, frozen=True):
    """Answer of `POST /load` for an embedding model or reranker."""

    loaded: LoadedEmbedder


# The household


class Machines(msgspec.Struct, frozen=True):
    """Answer of `GET /machines`."""

    machines: list[Machine] = []
    strangers: list[Stranger] = []


class MachineAnswer(msgspec.Struct, frozen=True):
    """Answer of routes that return the machine that was meant or paired."""

    machine: MachineRef


class PairingCode(msgspec.Struct, frozen=True):
    """Answer of `POST /pairing`: the code to enter on the other machine, and how long it is valid."""

    code: str
    address: str = ""
    seconds: int = 0
    tries: int = 0


class Joined(msgspec.Struct, frozen=True):
    """Answer of `POST /pairing/join`."""

    machine: MachineRef
    guest: bool = False  # this machine may only ask questions there
    called: str | None = None  # this machine's new name, if its own was taken


class RenamedMachine(MachineRef, frozen=True):
    """A machine with the name it had before."""

    was: str = ""


class Renamed(msgspec.Struct, frozen=True):
    """Answer of `POST /machines/{ref}/name`."""

    renamed: RenamedMachine


class MachineRoles(MachineRef, frozen=True, kw_only=True):
    """A machine with its roles."""

    roles: list[str]


class RolesSet(msgspec.Struct, frozen=True):
    """Answer of `POST /machines/{ref}/roles`."""

    machine: MachineRoles


class Removed(msgspec.Struct, frozen=True):
    """Answer of `DELETE /machines/{ref}`."""

    removed: MachineRef
    also_removed: list[str] = []  # names of machines that it had added


class UsedAgain(msgspec.Struct, frozen=True):
    """Answer of `POST /machines/{ref}/use-again`."""

    used_again: MachineRef


class Reached(msgspec.Struct, frozen=True):
    """Answer of `POST /machines/{ref}/address`."""

    reached: MachineRef


class MachineRefs(msgspec.Struct, frozen=True):
    """Answer of `POST /copies`: the machines that a file can be copied from."""

    machines: list[MachineRef] = []
