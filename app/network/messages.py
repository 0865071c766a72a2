"""The control messages between two machines, and their encoding. No I/O.

A message is a JSON object of at most 64 KiB and 8 levels. Its `type` field names the kind of message. The size and
depth are checked before the values. A message with an unknown, missing or invalid field is a BadMessage, which ends
the link. Hello, HelloAck and Refuse have the same fields in every protocol version, so even incompatible versions
can identify themselves to each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from app.core.errors import Fact, Reason
from app.core.household.link import LinkKind
from app.core.household.operations import MAX_OPERATION_BYTES
from app.core.lending.policy import LINK_MOST_MBIT
from app.core.model import MAX_FAMILY, ModelShape
from app.core.reasons import SENTENCES, has_sentence
from backends.contract import MAX_CHECKPOINTS, KvType

PROTOCOL = 11
# Versions 1 to 10 were never released. In versions up to 4, an f16 row has no exponent and an 8-bit row has one scale,
# so hidden states would be misread. Version 5 does not support nested reasons, version 6 does not know `exact`, version
# 7 knows neither pictures nor the models that a host shares, version 8 no pictures with two-dimensional positions,
# version 9 neither kept prompts nor steps that check guesses or cut back a slot, and version 10 no chosen engine.
# From now on, the newer side leaves out anything that the older one does not know. tests/network/test_wire_format.py
# fails if the messages change without the number.
OLDEST_PROTOCOL = 11
MAX_MESSAGE_BYTES = 64 << 10
MAX_DEPTH = 8
LOG_BATCH_BYTES = 32 << 10  # a longer log is split into several Log messages
MAX_LISTED_MACHINES, MAX_LISTED_ADDRESSES = 64, 4
MAX_SECONDS, MAX_STEP_SECONDS, MAX_RATE, MAX_BITS = 1e9, 1e3, 1e13, 1 << 50
MAX_FAMILIES = 32  # a machine lists at most so many that its graphics card does not compute
MAX_SHARED_MODELS = 8
MAX_INTERFACE_CHARACTERS = 32  # characters of a name; a message with 64 links stays far below the size limit

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?')

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
MAX_TEXT_CHARACTERS = 200
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARACTERS)]
Family = Annotated[str, msgspec.Meta(max_length=MAX_FAMILY)]
ModelName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Code = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,64}$")]
# The engine that the host's user chose, if this machine has it; "" leaves it to this machine's owner.
ChosenEngine = Literal["", "llamacpp", "pytorch", "apple"]
Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]  # the id of a machine, or the SHA-256 of a file
Pipeline = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
StepSeconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_STEP_SECONDS)]  # one step, or a part of it
SomeSeconds = Annotated[float, msgspec.Meta(ge=1e-9, le=1e3)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=MAX_RATE)]
Bits = Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)]
Interface = Annotated[str, msgspec.Meta(max_length=MAX_INTERFACE_CHARACTERS)]
ShortFact = Text | Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)] | float


class SentReason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason that is nested in another reason as one of its facts."""

    code: Code
    facts: Facts = {}


Facts = Annotated[dict[Code, ShortFact | SentReason], msgspec.Meta(max_length=16)]


class BadMessage(Exception):
    """Error for a message that violates the protocol. The link must then end."""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", kw_only=True):
    pass


class _Greeting(_Message, frozen=True):
    """A greeting with the sender's identity and what it lends. `build` is the sender's program version."""

    protocol: Count
    build: Name
    id: Id
    instance: Pipeline  # random at each start; two instances of one id mean a copied disk image
    name: Name
    engines: Annotated[list[Text], msgspec.Meta(max_length=16)]
    lendable_bytes: Bytes
    total_bytes: Bytes
    device: Text
    peer_port: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Hello(_Greeting, frozen=True, tag="hello"):
    """The first message on a link, sent by the side that dialed."""


class HelloAck(_Greeting, frozen=True, tag="hello_ack"):
    """The answer to Hello that establishes the link."""


def as_ack(mine: Hello) -> HelloAck:
    """Convert our greeting into a HelloAck."""
    fields = {name: getattr(mine, name) for name in mine.__struct_fields__}
    return HelloAck(**fields)


class Refuse(_Message, frozen=True, tag="refuse"):
    """The refusal of a Hello, which ends the link, or of the last request."""

    code: Code
    facts: Facts = {}


class Log(_Message, frozen=True, tag="log"):
    """Operations of the household log, each encoded by `core.operations.encode`."""

    operations: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=MAX_OPERATION_BYTES)]], msgspec.Meta(max_length=4096)
    ]


class Ping(_Message, frozen=True, tag="ping"):
    """A heartbeat, which the peer answers with Pong."""

    n: Count


class Pong(_Message, frozen=True, tag="pong"):
    """The answer to a Ping. Its fields show whether a worker is slow or hung.

    `steps_done` counts from the start of the process, and `busy_seconds` from the start of the current step.
    """

    n: Count
    steps_done: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    busy_seconds: Seconds


class SharedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is loaded on the sending host and that members of the household may use."""

    name: ModelName
    id: Id
    context: Count
    ready: bool  # whether it can answer now; otherwise it is loading or being rebuilt
    base: bool = False  # whether it completes text but does not chat
    vision: bool = False  # whether it looks at pictures
    picture_tokens: Count = 0  # about how many tokens a picture takes; 0 if unknown


class PartlyRefused(msgspec.Struct, frozen=True):
    """A model family that only some graphics cards of a machine compute, and the memory lent on its other cards."""

    family: Family
    missing_bytes: Bytes


class Status(_Message, frozen=True, tag="status"):
    """The state of this machine and the memory that it lends. Sent whenever it changes."""

    name: Name
    device: Text
    total_bytes: Bytes
    lendable_bytes: Bytes
    used_bytes: Bytes
    state: Literal["off", "ready", "lending", "working", "draining", "paused"]
    reason: Code | None = None
    hottest_c: Annotated[int, msgspec.Meta(ge=0, le=200)] | None = None  # of its processor
    used_by: Annotated[list[Id], msgspec.Meta(max_length=MAX_LISTED_MACHINES)] = []
    engine: Text = ""
    watts: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    # The owner's bandwidth limit; 0 means none.
    link_mbit: Annotated[int, msgspec.Meta(ge=0, le=LINK_MOST_MBIT)] = 0
    idle_card: Text = ""  # a graphics card that does not compute because no engine pack for it is installed
    idle_card_pack: Text = ""  # the back end whose pack would use it
    # Model families that the graphics card does not compute, and the main memory that is lent for these.
    refused_families: Annotated[list[Family], msgspec.Meta(max_length=MAX_FAMILIES)] = []
    processor_bytes: Bytes = 0
    partly_refused: Annotated[list[PartlyRefused], msgspec.Meta(max_length=MAX_FAMILIES)] = []
    main_bytes: Bytes = 0  # the part of lendable_bytes that is main memory, if graphics cards compute; else 0
    models: Annotated[list[SharedModel], msgspec.Meta(max_length=MAX_SHARED_MODELS)] = []


class OpenStage(_Message, frozen=True, tag="open_stage"):
    """A host's request to open a stage for a range of layers. Later frames must match its fields."""

    request: Count
    pipeline: Pipeline
    epoch: Count
    model: Text
    manifest: Id  # SHA-256 of the manifest sent by PUT /stage
    first: Count
    last: Count
    n_layers: Count
    width: Count
    number: Literal["f32", "f16", "q8"]
    slots: Count
    kv_cells: Count
    context: Count
    batch_rows: Count
    engine: Text
    kv: KvType = KvType.F16
    kept_states: Annotated[int, msgspec.Meta(ge=0, le=MAX_CHECKPOINTS)] = MAX_CHECKPOINTS
    exact: bool = False  # use the processor instructions that all common computers have
    chosen_engine: ChosenEngine = ""
    kept_rows: Count = 1  # prompt rows after which a recurrent state is stored


class StageProgress(_Message, frozen=True, tag="stage_progress"):
    """A lender's progress in loading the layers of a stage."""

    pipeline: Pipeline
    step: Code
    done: Bytes
    total: Bytes


class StageReady(_Message, frozen=True, tag="stage_ready"):
    """Notice that the layers of a stage are loaded, and that frames of this epoch may be sent."""

    pipeline: Pipeline
    epoch: Count
    memory_bytes: Bytes
    fetched_bytes: Bytes
    card: Text = ""  # the graphics card that computes the stage; empty for the processor
    card_short: bool = False  # the card ran out of memory, so fewer layers than planned are on it
    work_bytes: Bytes = 0  # what the engine allocated on it besides weights and KV cache; on several, the most


class StageFailed(_Message, frozen=True, tag="stage_failed"):
    """Notice that the layers of a stage could not be loaded."""

    pipeline: Pipeline
    code: Code
    facts: Facts = {}


class KeepSlot(_Message, frozen=True, tag="keep_slot"):
    """A host's request to save the state of an unused slot to disk. The answer is SlotDone.

    key: identifies the slot's tokens. Only the host knows which tokens it stands for.
    """

    request: Count
    pipeline: Pipeline
    epoch: Count
    slot: Count
    positions: Count
    key: Id


class RestoreSlot(_Message, frozen=True, tag="restore_slot"):
    """A host's request to load a saved state into an empty slot. The answer is SlotDone."""

    request: Count
    pipeline: Pipeline
    epoch: Count
    slot: Count
    key: Id


class SlotDone(_Message, frozen=True, tag="slot_done"):
    """The answer to KeepSlot or RestoreSlot. `positions` is the number of positions copied or restored: all of
    them or 0.
    """

    request: Count
    pipeline: Pipeline
    positions: Count


class CloseStage(_Message, frozen=True, tag="close_stage"):
    """Notice that the host no longer needs a stage."""

    pipeline: Pipeline


class Answering(_Message, frozen=True, tag="answering"):
    """Notice that the sender, a host, has started (`now`) or finished an answer that uses layers on this machine.

    Until the answer is finished, the layers are in use even if no frame arrives.
    """

    now: bool


class StageLost(_Message, frozen=True, tag="stage_lost"):
    """Notice that the lender's worker process has ended and the stage is lost."""

    pipeline: Pipeline
    code: Code
    facts: Facts = {}


class Whereabouts(_Message, frozen=True, tag="whereabouts"):
    """The addresses at which the sender reached other members, as `address:port`, latest first. They are only hints."""

    machines: Annotated[
        dict[
            Id,
            Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=MAX_LISTED_ADDRESSES)],
        ],
        msgspec.Meta(max_length=MAX_LISTED_MACHINES),
    ]


class MeasuredLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The sender's measurement of its link to `machine`, and how old it is."""

    machine: Id
    age_s: Seconds
    round_trip_s: StepSeconds
    round_trip_p95_s: StepSeconds
    out_bytes_per_s: Rate
    in_bytes_per_s: Rate
    interface: Interface = ""
    kind: LinkKind = LinkKind.UNKNOWN
    negotiated_bits_per_s: Bits | None = None
    far_interface: Interface = ""
    far_kind: LinkKind = LinkKind.UNKNOWN
    far_negotiated_bits_per_s: Bits | None = None


class LinksMeasured(_Message, frozen=True, tag="links_measured"):
    """The sender's measurements of all its links that are up. They are shown to users but never used for planning."""

    links: Annotated[list[MeasuredLink], msgspec.Meta(max_length=MAX_LISTED_MACHINES)]


class MeasureSpeed(_Message, frozen=True, tag="measure_speed"):
    """A host's request to measure how fast this machine computes a model of this shape."""

    request: Count
    shape: ModelShape
    batch_rows: Annotated[int, msgspec.Meta(ge=1, le=512)]
    exact: bool = False  # with the processor instructions that all common computers have
    again: bool = False  # the previous measurement was far off
    family: Family = ""  # of the model, because a graphics card may not compute it
    chosen_engine: ChosenEngine = ""


class ProcessorSpeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The times of the processor next to a graphics card. The fields are those of SpeedMeasured."""

    layer_s: SomeSeconds
    layer_row_s: StepSeconds
    position_s: StepSeconds
    chunk_s: SomeSeconds
    step_s: StepSeconds
    chunk_position_s: StepSeconds = 0.0


class SpeedMeasured(_Message, frozen=True, tag="speed_measured"):
    """The answer to MeasureSpeed. The fields are those of app/core/planner/speed_estimates.py.

    The times of the output head are left out, since it runs on the host.
    """

    request: Count
    layer_s: SomeSeconds
    layer_row_s: StepSeconds
    position_s: StepSeconds
    chunk_s: SomeSeconds
    step_s: StepSeconds
    chunk_position_s: StepSeconds = 0.0
    other_load: Share = 0.0  # share of the processor that other programs used
    processor: ProcessorSpeed | None = (
        None  # if a graphics card computes and the processor takes what it has no room for
    )


class SpeedRefused(_Message, frozen=True, tag="speed_refused"):
    """The answer to MeasureSpeed if the machine is busy, lacks memory, or cannot compute a model of this shape."""

    request: Count
    code: Code
    facts: Facts = {}


class CallMe(_Message, frozen=True, tag="call_me"):
    """A request to connect to the sender's port at the stated address, and to report whether the connection
    succeeded."""

    request: Count


class Called(_Message, frozen=True, tag="called", omit_defaults=True):
    """The answer to CallMe. `reached` is null if no connection was tried, because the last try was too recent.

    hears: whether the sender receives the recipient's announcements, or null if unknown.
    """

    request: Count
    reached: bool | None
    hears: bool | None = None


class Leaving(_Message, frozen=True, tag="leaving"):
    """Notice that this machine is going offline on purpose. It may come back."""

    reason: Code


Message = (
    Hello
    | HelloAck
    | Refuse
    | Log
    | Ping
    | Pong
    | Status
    | OpenStage
    | StageProgress
    | StageReady
    | StageFailed
    | CloseStage
    | KeepSlot
    | RestoreSlot
    | SlotDone
    | Answering
    | StageLost
    | MeasureSpeed
    | SpeedMeasured
    | SpeedRefused
    | CallMe
    | Called
    | Leaving
    | Whereabouts
    | LinksMeasured
)

_DECODER: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_ENCODER = msgspec.json.Encoder()


def are_compatible(own: int, other: int) -> bool:
    """Return whether two protocol versions are compatible: equal or adjacent, and not too old."""
    return min(own, other) >= OLDEST_PROTOCOL and abs(own - other) <= 1


def encode(message: Message) -> bytes:
    """Encode a message as JSON. Raises ValueError if it is too long, which indicates a bug."""
    raw = _ENCODER.encode(message)
    if len(raw) > MAX_MESSAGE_BYTES:
        raise ValueError(f"{type(message).__name__} of {len(raw)} bytes")
    return raw


def decode(raw: bytes) -> Message:
    """Decode a message. Raises only BadMessage."""
    if len(raw) > MAX_MESSAGE_BYTES:
        raise BadMessage("longer than 64 KiB")
    if is_too_deep(raw):
        raise BadMessage("deeper than 8 levels")
    try:
        return _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadMessage(str(error)) from error


def received_reason(message: Refuse | StageFailed | StageLost | SpeedRefused) -> Reason:
    """Return the reason in a peer's message, or a general one if this version has no sentence for it."""
    return displayable_reason(_received(message.code, message.facts))


def displayable_reason(reason: Reason) -> Reason:
    """Sanitize a received reason for display. Return `peer_refused` if this version has no sentence for it."""
    named = ("self", "code")  # these names would clash with arguments of the error
    facts = {name: fact for name, fact in reason.facts.items() if name not in named}
    plain = Reason(reason.code, facts).mapped(_printable)
    return plain if reason.code in SENTENCES and has_sentence(plain) else Reason("peer_refused")


def log_batches(operations: list[str]) -> list[Log]:
    """Split the lines of a log into messages. Their order is preserved, because operations depend on earlier ones."""
    batches: list[list[str]] = [[]]
    size = 0
    for operation in operations:
        size += len(operation)
        if size > LOG_BATCH_BYTES and batches[-1]:
            batches.append([])
            size = len(operation)
        batches[-1].append(operation)
    return [Log(operations=batch) for batch in batches]


def sent_facts(facts: Mapping[str, Fact]) -> Facts:
    """Convert the facts of a reason to the form in which they are sent."""
    return {
        name: SentReason(fact.code, sent_facts(fact.facts)) if isinstance(fact, Reason) else fact
        for name, fact in facts.items()
    }


def _received(code: str, facts: Facts) -> Reason:
    return Reason(
        code,
        {
            name: _received(fact.code, fact.facts) if isinstance(fact, SentReason) else fact
            for name, fact in facts.items()
        },
    )


def _printable(_name: str, fact: str | int | float) -> str | int | float:
    """Remove control characters and text-direction marks from a text. Numbers are returned unchanged."""
    return "".join(filter(str.isprintable, fact)) if isinstance(fact, str) else fact


def is_too_deep(raw: bytes) -> bool:
    """Return whether brackets outside strings are nested too deeply. This must be checked before decoding."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for byte in _STRING.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif byte in b"]}":
            depth -= 1
    return False
