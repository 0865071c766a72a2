"""The responses to questions and to requests about the household."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from app.api.plans import LoadedEmbedder, LoadedModel, Notice, Progress, Stage
from app.api.snapshot import Machine, MachineRef, Stranger
from app.core.errors import Fact, Reason

T = TypeVar("T")

# The lines of the response to `POST /ask`


class AnsweredBy(msgspec.Struct, frozen=True):
    """The model that answers instead of the requested one, or on another machine. `text` explains this to the user in
    English. The window makes its own sentence from `text_facts`, and shows nothing if there are none.
    """

    model: str
    text: str = ""
    text_facts: Reason | None = None


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The next piece of an answer. `was_thought` means that all text before this piece was reasoning."""

    text: str
    token_ids: list[int]
    thought: str = ""
    was_thought: bool = False
    hidden_bytes: int = 0


class ForecastSpeed(msgspec.Struct, frozen=True):
    """The forecast speed of an answer."""

    ttft_s: float = 0.0
    decode_tok_s: float = 0.0
    # whether the model is too small, or a computer was too busy, for a forecast that could be right, so none is shown
    too_small: bool = False


class AnswerRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """The recovery from the loss of a machine during an answer."""

    machine: str = ""
    reason: str | None = None
    reason_facts: Reason | None = None
    detected_after_s: float = 0.0
    recovered_after_s: float = 0.0
    left: bool = False  # it left on purpose
    others: str = msgspec.field(name="with", default="")  # names of the machines that took over its layers


class StageFigures(msgspec.Struct, frozen=True):
    """The work of one stage for an answer. `machine` is the ID or the name of the stage's machine."""

    machine: str
    first: int = 0
    last: int = 0
    busy_s: float = 0.0
    wait_s: float = 0.0
    bytes_out: int = 0
    bytes_in: int = 0
    steps: int = 0


class AnswerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The text of an answer, with its durations and token counts."""

    text: str = ""
    thought: str = ""
    thought_tokens: int = 0
    thought_s: float = 0.0
    token_ids: list[int] = []
    prompt_tokens: int = 0
    reused_tokens: int = 0  # prompt tokens found in the KV cache
    before_s: float = 0.0  # the time until the first tokens were computed
    queued_s: float = 0.0
    ttft_s: float | None = None
    decode_tok_s: float | None = None
    guessed: int = 0
    guessed_right: int = 0
    guess_runs: int = 0  # runs in which these tokens were guessed
    drafted_right: int = 0  # of the right guesses, those of a draft model
    guess_gain: float | None = None  # how many times as fast the answer was because of guesses, if that is known
    restored_s: float = 0.0  # of ttft_s, spent on reading a kept prompt from disk
    tokens_elsewhere: int = 0  # written by another server, which does not tell their ids

    @property
    def n_tokens(self) -> int:
        """Return how many tokens the answer has."""
        return len(self.token_ids) + self.tokens_elsewhere


class ToolCall(msgspec.Struct, frozen=True):
    """A complete call of a tool. `arguments` is a JSON object as text."""

    id: str
    name: str
    arguments: str


class Answer(AnswerFigures, frozen=True, kw_only=True):
    """A finished answer. Its finish reason is "calls" if the model waits for the results of its calls."""

    finish_reason: str | None = None
    calls: list[ToolCall] = []
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
    doubted: list[str] = []  # sentences about machines that computed wrong results
    doubted_facts: list[Reason] = []


class SentError(msgspec.Struct, frozen=True):
    """An error as sent by the node."""

    kind: str
    code: str = ""
    facts: dict[str, Fact] = {}
    message: str = ""


class ErrorResponse(msgspec.Struct, frozen=True):
    """The response to a failed request."""

    error: SentError


class EmptyResponse(msgspec.Struct, frozen=True):
    """The empty response of routes that return no data."""


class WaitingPlace(msgspec.Struct, frozen=True):
    """The place of a request in the line of the host that will answer it."""

    place: int  # 1 for the next one
    seconds: int | None = None  # estimated time until its turn


class AnswerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a streamed answer. Exactly one field is set."""

    progress: Progress | None = None  # of loading a model before the answer
    by: AnsweredBy | None = None
    recovery: Notice | None = None
    waiting: WaitingPlace | None = None  # sent by a host to another member only
    delta: Delta | None = None
    done: Answer | None = None
    error: SentError | None = None


class ProgressLine(msgspec.Struct, frozen=True):
    """A line that reports the progress of a long operation other than an answer."""

    progress: Progress


class DoneLine(msgspec.Struct, Generic[T], frozen=True):
    """The last line of a long operation other than an answer, with its result."""

    done: T


class AnswerKeys(msgspec.Struct, frozen=True):
    """The response to `GET /answers`: the keys of the answers that can be followed."""

    answers: list[str] = []


class TokenCount(msgspec.Struct, frozen=True):
    """The response to `POST /tokens`."""

    tokens: int = 0


class LoadResponse(msgspec.Struct, frozen=True):
    """The response to `POST /load` for a language model."""

    loaded: LoadedModel


class LoadEmbedderResponse(msgspec.Struct, frozen=True):
    """The response to `POST /load` for an embedding model or a reranker."""

    loaded: LoadedEmbedder


# The household


class Machines(msgspec.Struct, frozen=True):
    """The response to `GET /machines`."""

    machines: list[Machine] = []
    strangers: list[Stranger] = []


class MachineResponse(msgspec.Struct, frozen=True):
    """The response of routes that return a single machine, such as the one that was paired."""

    machine: MachineRef


class PairingCode(msgspec.Struct, frozen=True):
    """The response to `POST /pairing`: the code to enter on the other machine, and how long it is valid."""

    code: str
    address: str = ""
    seconds: int = 0
    tries: int = 0


class JoinResponse(msgspec.Struct, frozen=True):
    """The response to `POST /pairing/join`."""

    machine: MachineRef
    guest: bool = False  # this machine may only ask questions there, not lend
    called: str | None = None  # this machine's new name, if its own was taken


class RenamedMachine(MachineRef, frozen=True):
    """A machine and its former name."""

    was: str = ""


class RenameResponse(msgspec.Struct, frozen=True):
    """The response to `POST /machines/{ref}/name`."""

    renamed: RenamedMachine


class MachineRoles(MachineRef, frozen=True, kw_only=True):
    """A machine and its roles."""

    roles: list[str]


class SetRolesResponse(msgspec.Struct, frozen=True):
    """The response to `POST /machines/{ref}/roles`."""

    machine: MachineRoles


class RemoveMachineResponse(msgspec.Struct, frozen=True):
    """The response to `DELETE /machines/{ref}`."""

    removed: MachineRef
    also_removed: list[str] = []  # names of machines that it had added


class UseAgainResponse(msgspec.Struct, frozen=True):
    """The response to `POST /machines/{ref}/use-again`."""

    used_again: MachineRef


class DialAddressResponse(msgspec.Struct, frozen=True):
    """The response to `POST /machines/{ref}/address`."""

    reached: MachineRef


class MachineRefs(msgspec.Struct, frozen=True):
    """The response to `POST /copies`: the machines from which a file can be copied."""

    machines: list[MachineRef] = []
