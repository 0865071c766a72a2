"""The interface between the app and the inference engines: stages, their configuration, inputs, outputs and errors.

A stage is a contiguous range of a model's layers, loaded by one worker. This module uses only the standard library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

LLAMACPP = "llamacpp"  # the engine that every installation has
PYTORCH, APPLE = "pytorch", "apple"  # the second is MLX
ADDED_ENGINES = (PYTORCH, APPLE)  # engines that are installed apart from Poolhouse
CPU_VARIANT = "POOLHOUSE_CPU_VARIANT"  # environment variable: the kind of processor whose code a worker prefers
EXACT = "exact"  # in it: the kinds whose instructions all common processors have, for equal results everywhere
BACKENDS = "POOLHOUSE_BACKENDS"  # environment variable: the paths of the back ends that a probe loads, as JSON
MAX_CHECKPOINTS = 2  # maximum number of recurrent states saved per slot, each after one of its latest prompts
GRAMMAR_TOO_HEAVY = -1  # sampled in place of a token when a grammar becomes too heavy, which ends the answer
NOT_SAMPLED = -2  # stands for each token after the first wrong guess of a checked step
MOST_GUESSES = 16  # guessed rows of one step over all its segments, because the scores of each take memory
MAX_BATCH_TOKENS = 512  # rows of one step over all its segments (SAFETY.md 5)
MAX_TOP_LOGPROBS = 20  # alternatives reported with a sampled token: as many as common APIs offer
# in messages of llama.cpp and of graphics drivers, and the one that llama.cpp overcomes by itself
OUT_OF_MEMORY_SIGNS = (
    "bad_alloc",
    "insufficient memory",
    "failed to allocate",
    "unable to allocate",
    "ErrorOutOfDeviceMemory",  # Vulkan
    "out of memory",  # CUDA and ROCm
    "Insufficient Memory",  # Metal
)
PINNED_MEMORY = "pinned memory"
# in a line with one of these signs: the memory of a graphics card, and not main memory
DEVICE_MEMORY_SIGNS = ("DeviceMemory", "out of memory", "Insufficient Memory", "Vulkan", "CUDA", "ROCm", "MTL", "Metal")
# Versions of llama-cpp-python with which every cut of every family was proved (docs/families.md)
PROVED_ENGINES = ("0.3.36",)
EXPONENT_BYTES = 2  # for each row in f16
BLOCK_VALUES = 32  # values of an 8-bit row that share a scale
SCALE_BYTES = 2
OUTLIER_BYTES = 2 + 4  # its position in the row and its value
# Together with the scales, at most 1.15 bytes are sent per value for widths from 72 on.
VALUES_PER_OUTLIER = 72
JsonScalar = str | int | float | bool | None  # a JSON scalar
KV_CELL_ALIGNMENT = 256  # llama.cpp rounds the cells of a slot up to a multiple of this if slots do not share cells


def tells_out_of_memory(words: str) -> bool:
    """Return whether an engine's message, of one or more lines, reports a failed allocation."""
    return any(True for _ in _failed_allocations(words))


def tells_device_out_of_memory(words: str) -> bool:
    """Return whether an engine's message reports a failed allocation on a graphics card."""
    return any(sign in line for line in _failed_allocations(words) for sign in DEVICE_MEMORY_SIGNS)


def _failed_allocations(words: str) -> Iterator[str]:
    for line in words.splitlines():
        if PINNED_MEMORY not in line and any(sign in line for sign in OUT_OF_MEMORY_SIGNS):
            yield line


def is_proved(version: str) -> bool:
    """Return whether this engine version is known to compute parts of models correctly.

    A suffix after a plus sign describes the build and is ignored.
    """
    return version.partition("+")[0] in PROVED_ENGINES


@dataclass(frozen=True, slots=True, order=True)
class Layers:
    """A non-empty range of consecutive layers, from `first` up to but not including `last`."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise ValueError(f"no run of layers: {self.first} to {self.last}")

    def __len__(self) -> int:
        return self.last - self.first


class Role(StrEnum):
    """The position of a stage in its pipeline, which determines its inputs and outputs."""

    FIRST = "first"  # token ids in, hidden states out
    MIDDLE = "middle"  # hidden states in and out
    LAST = "last"  # hidden states in, logits and sampled tokens out
    WHOLE = "whole"  # token ids in, logits and sampled tokens out

    @property
    def has_head(self) -> bool:
        """Return whether stages of this role hold the output matrix, and so compute logits and sample tokens."""
        return self in (Role.LAST, Role.WHOLE)


def n_blocks(width: int) -> int:
    """Return the number of blocks in an 8-bit row. The last block may be shorter."""
    return -(-width // BLOCK_VALUES)


def n_outliers(width: int) -> int:
    """Return how many values of an 8-bit row are sent unquantized."""
    return max(1, width // VALUES_PER_OUTLIER)


class NumberFormat(IntEnum):
    """The encoding of hidden-state values on the wire. Each enum value is the number byte in the frame header."""

    F32 = 0
    F16 = 1  # an int16 exponent for each row, then a half-precision number for each value
    Q8 = 2  # a row's few outliers exactly, a bfloat16 scale for every 32 values, a signed byte for each value
    IDS = 3  # token ids as int32, only on the pipe to the local worker

    def row_bytes(self, width: int) -> int:
        """Return the size in bytes of one row of `width` values, or of one token id."""
        match self:
            case NumberFormat.F32:
                return 4 * width
            case NumberFormat.F16:
                return EXPONENT_BYTES + 2 * width
            case NumberFormat.Q8:
                return OUTLIER_BYTES * n_outliers(width) + SCALE_BYTES * n_blocks(width) + width
            case NumberFormat.IDS:
                return 4


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A moment in local time. It includes the UTC offset because a worker may not know its user's time zone."""

    epoch_seconds: float  # since 1970, UTC
    utc_offset_seconds: int = 0  # at that moment


@dataclass(frozen=True, slots=True)
class Segment:
    """`n_tokens` consecutive positions of the sequence in `slot`, starting at position `pos`."""

    slot: int
    n_tokens: int
    pos: int

    @property
    def end(self) -> int:
        return self.pos + self.n_tokens


@dataclass(frozen=True, slots=True)
class PictureGrid:
    """A picture whose rows have positions in two dimensions (M-RoPE).

    first: the index of its first row in the sequence. All its rows have the same position in time. Row `n` is in line
    `n // n_columns` and column `n % n_columns`. For the text after it, the picture counts as many positions as its
    longer side has rows.
    """

    first: int
    n_columns: int
    n_lines: int

    @property
    def n_rows(self) -> int:
        return self.n_columns * self.n_lines

    @property
    def end(self) -> int:
        return self.first + self.n_rows

    @property
    def n_positions(self) -> int:
        return max(self.n_columns, self.n_lines)


FIRST_PICTURE_ID = -2  # the id of the first row of the first picture; -1 is GRAMMAR_TOO_HEAVY


class PictureRows(Protocol):
    """The rows of pictures that take the place of token embeddings."""

    def rows(self, ids: Sequence[int]) -> memoryview:
        """Return the rows with these ids, which are negative: float32. Raises StageError if one is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of a step, in the order of its segments. A negative id stands for a row of a picture.

    sees_all: whether every row attends to all rows of the step, and not only to those before it.
    """

    segments: tuple[Segment, ...]
    ids: Sequence[int]
    pictures: PictureRows | None = None
    sees_all: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden states of a step: float32 `[n_rows, width]`, row-major, in the order of its segments."""

    segments: tuple[Segment, ...]
    rows: memoryview
    sees_all: bool = False  # see Tokens


@dataclass(frozen=True, slots=True)
class Logits:
    """The scores for the next token: float32 `[n_rows, n_vocab]`, valid until the stage's next step.

    Each segment for which logits were requested has one row, for its last position, or one row for each of its last
    positions if the request asked for several.
    """

    segments: tuple[Segment, ...]
    rows: memoryview


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters, with the names and meanings that llama.cpp gives them. Temperature 0 is greedy."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    grammar: str = ""  # in GBNF; JSON schemas have already been converted to it
    likely: int | None = None  # also report the log probability of each token and of this many of the likeliest tokens

    @property
    def is_special(self) -> bool:
        """Return whether a grammar, a bias or a penalty changes the choice of tokens."""
        changes = (self.repeat_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)
        return bool(self.grammar or self.logit_bias) or changes


GREEDY = Sampling(temperature=0.0)


# The measured effect of a q8_0 KV cache on answers: the Guide's 200 questions, greedy, on average 34 tokens per answer
# (`python -m guide.kv`). Other models and longer texts were not measured.
KV_ANSWERS = 200
KV_SAME_ANSWERS = 197  # answers that were identical token for token


class KvType(StrEnum):
    """The number type of the KV cache."""

    F16 = "f16"
    Q8_0 = "q8_0"  # a 16-bit scale for every 32 signed bytes

    def bytes_of(self, f16_bytes: int) -> int:
        """Return the size of values in this number type, given their size in f16."""
        return f16_bytes if self is KvType.F16 else -(-f16_bytes * 34 // 64)


class CardSplit(StrEnum):
    """The division of a stage among several devices.

    llama.cpp's third mode, by rows, is not supported here, because only its SYCL and Hexagon back ends implement it.
    """

    LAYERS = "layers"  # each device holds consecutive layers
    TENSORS = "tensors"  # each device holds a part of every matrix, so all compute at once and exchange their results


@dataclass(frozen=True, slots=True)
class FamilyTraits:
    """The peculiarities of a model family that an engine must handle.

    Engines check these traits, so they do not need to know the families.
    """

    input_scale: float = 1.0  # factor for each incoming value
    position_planes: int = 1  # positions for each incoming hidden state; if several, the last plane is 0
    boundary: str = "l_out"  # name of the output tensor; in the graph, "-" and the number of the last layer follow
    # Layers have a state that can only be cut back to the end of a recent prompt (MAX_CHECKPOINTS), and prompts of two
    # sequences are not computed together.
    recurrent: bool = False
    # Keys are rotated by other factors if the context is longer than that of the training, so the state of a slot
    # belongs to its length of the context.
    by_context: bool = False


DEFAULT_TRAITS = FamilyTraits()


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The result of comparing a device with the processor on a small model (backends/known_answer.py)."""

    failure: str = ""  # not_finite, apart, tokens or, if the same steps gave different results, unsteady; empty: none
    apart: float = 0.0  # root mean square of the difference to the spread of the scores, at most


@dataclass(frozen=True, slots=True)
class DeviceCheck:
    """The result of comparing a stage's own layers on a device with the processor (llamacpp/device_check.py).

    Differences are root mean squares relative to the spread of what the layers add to a row.
    """

    apart: float  # of the median row
    most_apart: float  # of the worst row


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """The rule that decides which recurrent states of a slot are saved (see SlotCheckpoints).

    All stages must apply the same rule.
    """

    marks: int = MAX_CHECKPOINTS  # at most
    least_rows: int = 1  # minimum length of a prompt whose state is saved; shorter prompts are computed again


DEFAULT_CHECKPOINTS = CheckpointRule()


@dataclass(frozen=True, slots=True)
class StageConfig:
    """Everything that an engine needs to load one stage. It stays the same until the stage is closed."""

    engine: str  # LLAMACPP, PYTORCH, APPLE or "fake"
    path: str  # the stage file, or the whole model for Role.WHOLE
    # Role.FIRST: the file with `token_embd.weight`. Role.LAST: the file with the vocabulary for grammars, or empty.
    embedding_path: str
    role: Role
    layers: Layers
    width: int
    slots: int  # concurrent sequences
    kv_cells: int  # positions over all slots
    batch_rows: int  # maximum rows of one step, at most MAX_BATCH_TOKENS
    threads: int  # at most
    flash_attention: bool = True  # llama.cpp's default: faster prefill and far less memory
    apart: bool = False  # each slot has an equal share of the cells; otherwise all slots share them
    traits: FamilyTraits = DEFAULT_TRAITS
    kv: KvType = KvType.F16
    keep: CheckpointRule = DEFAULT_CHECKPOINTS
    begin_threads: int = 0  # where the search for the best number starts (thread_choice.py); 0: always use `threads`
    # The device that computes all layers, such as `Vulkan0` or `cuda:0`, and the path of the back end that provides it,
    # or the folder with torch or MLX. Empty: the processor, and the torch or MLX that this process finds.
    device: str = ""
    library: str = ""
    # Further devices of the same library, and how many layers each device computes, `device` first. The processor
    # computes the layers before these. Without numbers, a single device computes all layers.
    more_devices: tuple[str, ...] = ()
    device_layers: tuple[int, ...] = ()
    # Of several devices, with equal parts of everything if it is TENSORS. The processor then computes nothing.
    split: CardSplit = CardSplit.LAYERS
    # So many layers, from the first one, leave their experts to the processor, because a token uses few of them.
    processor_experts: int = 0
    # Compare the first layers on the device with the processor before they are used. A stage that was compared is the
    # same stage.
    compared: bool = field(default=False, compare=False)
    exact: bool = False  # use the processor instructions that all common computers have (llamacpp/backend_libraries.py)
    any_engine: bool = False  # allow an unproved engine, for trials and for the proof itself

    @property
    def devices(self) -> tuple[str, ...]:
        """Return all devices that compute layers, or an empty tuple if only the processor does."""
        return (self.device, *self.more_devices) if self.device else ()

    @property
    def uses_processor(self) -> bool:
        """Return whether the processor computes some of the layers or experts."""
        if not self.device or self.processor_experts:
            return True
        return bool(self.device_layers) and sum(self.device_layers) < len(self.layers)


def can_separate_slots(slots: int, kv_cells: int, context: int) -> bool:
    """Return whether every slot can have its own cells, in multiples of KV_CELL_ALIGNMENT.

    When slots share cells, attention visits all of them and masks those of other slots. This made a decode step of 8
    answers with 500 tokens each take 1.4 times as long (measured on one core).
    """
    return slots > 1 and kv_cells >= slots * context and kv_cells % (slots * KV_CELL_ALIGNMENT) == 0


def scored_rows(slots: int, *, recurrent: bool = False) -> int:
    """Return the maximum number of rows in one step that need scores: one for each slot, and one for each guess.

    A recurrent state cannot undo a wrong guess, so recurrent models get no guesses.
    """
    return slots + (0 if recurrent else MOST_GUESSES)


class Stage(Protocol):
    """A range of layers loaded by an engine. Only one thread may call it, and calls may block."""

    def forward(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        """Compute one step and append its keys and values to the KV cache.

        due: the indexes of the segments that need logits; only the last stage uses them. n_scored: the number of last
        positions that need logits, for each of these segments; if empty, one for each. The last stage returns Logits,
        with the rows of these segments in order. All other stages return Hidden. Raises StageError if the step cannot
        be computed.
        """
        ...

    def forget(self, slot: int, keep: int = 0) -> None:
        """Drop the KV cache of a slot from position `keep` onward."""
        ...

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        """Give the rows of a slot's pictures their positions, from the next step on.

        grids: in order of the sequence. Raises StageError if the model knows no such positions.
        """
        ...

    def close(self) -> None:
        """Release the memory."""
        ...


class CodedError(Exception):
    """An error with a message for logs and, optionally, a translatable sentence.

    `cause` is the code of that sentence, and `facts` are its parameters.
    """

    def __init__(self, text: str = "", cause: str = "", **facts: str | int) -> None:
        super().__init__(text)
        self.cause, self.facts = cause, facts


class StageError(CodedError):
    """An engine's failure to load or compute a stage."""


class OutOfMemory(StageError):
    """A failed allocation because this machine has too little memory."""


class DeviceUnusable(StageError):
    """A graphics card that cannot compute a stage: the card or its library is missing, unsuitable or forbidden."""


class FamilyUnfit(DeviceUnusable):
    """A graphics card that cannot compute these layers, or computes them wrongly. Other models may work on it."""


class NotFinite(StageError):
    """A model result that is not finite, probably because the model file is damaged or was converted incorrectly."""


class BadSlots(StageError):
    """A step that failed because of the contents of these slots.

    The stage and its other slots are intact. `code` is one of the app's reason codes.
    """

    def __init__(self, code: str, slots: Sequence[int], words: str) -> None:
        super().__init__(words)
        self.code, self.slots = code, tuple(slots)


class UnprovedEngine(StageError):
    """An engine version that was never tested with models split into stages, so its results might be wrong."""


class TemplateFailed(CodedError):
    """A failure to apply a chat template."""


class ChatNotSupported(TemplateFailed):
    """A chat that a template cannot render in this form. Another form of the same chat may work."""


class ChatRejected(ChatNotSupported):
    """A chat that the template itself rejects, with a message written by the template's author."""


CALL_ID_PLACEHOLDER = "\ue000"  # within markers, stands for the id of a call, which the model chooses
CALL_NUMBER_PLACEHOLDER = "\ue001"  # within markers, stands for the number of a call
TOOL_NAME_PLACEHOLDER = "\ue002"  # within markers, stands for the name of the tool, if the name is written twice


class CallSyntax(StrEnum):
    """The syntax of a tool call between its markers."""

    OBJECTS = "objects"  # {"name": …, "arguments": {…}}
    NAMED = "named"  # the tool's name between markers, then its arguments as a JSON object
    TAGGED = "tagged"  # the name, then each argument between its own markers
    NESTED = "nested"  # like TAGGED, but arguments and their contents are XML elements
    PYTHON = "python"  # [name(key='value')]
    GEMMA = "gemma"  # call:name{key:<|"|>text<|"|>}
    HARMONY = "harmony"  # a message to functions.name


class CallIdKind(StrEnum):
    """The kind of call ids that a chat template accepts."""

    ANY = "any"
    SHORT = "short"  # nine letters and digits
    COUNTED = "counted"  # functions.name:0


@dataclass(frozen=True, slots=True)
class PastCalls:
    """The form in which a chat template accepts earlier tool calls of a conversation."""

    ids: CallIdKind = CallIdKind.ANY
    is_single: bool = False  # the template writes at most one call per message
    takes_text: bool = False  # the template accepts arguments as JSON text
    writes_calls: bool = True  # if not, calls are written into the text of their message


@dataclass(frozen=True, slots=True)
class CallFormat:
    """The markers around tool calls, exactly as the template writes them, including whitespace.

    Several calls are written as `section lead … trail between lead … trail section_end`, where each `…` stands for
    `head NAME named ARGUMENTS rest`.
    """

    payload: CallSyntax
    section: str = ""
    lead: str = ""
    head: str = ""
    named: str = ""
    rest: str = ""
    trail: str = ""
    between: str = ""
    section_end: str = ""
    # OBJECTS: the keys of the name and the arguments. If name_key is empty, the name itself is the key of the
    # arguments.
    name_key: str = "name"
    arguments_key: str = "arguments"
    # TAGGED: an argument is `key KEY keyed VALUE value_end`. `keyed` maps each type of value to its text, if it varies.
    key: str = ""
    keyed: tuple[tuple[str, str], ...] = ()
    value_end: str = ""
    other_begins: tuple[str, ...] = ()  # other markers with which calls may begin
    prompt_marker: str = ""  # the first marker, if the prompt already ends with it
    answer_marker: str = ""  # in that case, the text before a plain answer
    past: PastCalls = PastCalls()


@dataclass(frozen=True, slots=True)
class MessageMarkers:
    """The message markers of a model that writes several messages, each with a header that names its recipient.

    gpt-oss and Muse are such models.
    """

    start: str
    header_end: str
    ends: tuple[str, ...]
    to_reader: str  # the header of the message that contains the answer


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """The format of a model's reasoning, and the template variables that control it."""

    begin: str
    end: tuple[str, ...]
    messages: MessageMarkers | None = None  # if thoughts are separate messages
    answer_begin: tuple[str, ...] = ()  # markers around the answer that are not part of it
    answer_end: tuple[str, ...] = ()
    switch_on: dict[str, JsonScalar] = field(default_factory=dict)  # template variables
    switch_off: dict[str, JsonScalar] | None = None  # None: thinking cannot be turned off
    effort_option: str = ""  # the variable for the reasoning effort; empty: there is none
    efforts: tuple[str, ...] = ()
    is_habit: bool = False  # the template does not mention thoughts


# Most reasoning models use these markers, even some whose template does not mention thoughts.
DEFAULT_REASONING = ReasoningFormat("<think>", ("</think>",), is_habit=True)


@dataclass(frozen=True, slots=True)
class SlotCheckpoints:
    """The length of a slot of a recurrent model, and the positions at which its state was saved.

    Unlike a KV cache, a recurrent state cannot be cut back to an arbitrary position. The state is therefore saved at
    the end of each prompt, when a single-row segment follows a longer one. The next turn continues from the end of the
    slot or, if the client sends the answer back with changes, from the end of the last prompt. If that prompt added
    fewer than CheckpointRule.least_rows positions since the last saved state, its state is not saved and the prompt is
    computed again.

    The engine and the scheduler each derive this record from the sequence of steps, without exchanging it.
    """

    marks: tuple[int, ...] = ()
    end: int = 0
    of_prompt: bool = False  # the last segment had several rows
    rule: CheckpointRule = DEFAULT_CHECKPOINTS

    def keeps(self, segment: Segment) -> bool:
        """Return whether the state must be saved before this segment is computed."""
        ends = self.of_prompt and segment.n_tokens == 1 and segment.pos == self.end
        new = self.end - max(self.marks, default=0)
        return ends and self.rule.marks > 0 and (not new or new >= self.rule.least_rows)

    def after(self, segment: Segment) -> SlotCheckpoints:
        """Return the record after the segment has been computed."""
        marks = self.marks
        if self.keeps(segment) and self.end not in marks:
            marks = (*marks, self.end)[-self.rule.marks :]
        return SlotCheckpoints(marks, segment.end, segment.n_tokens > 1, self.rule)

    def reach(self, most: int) -> int:
        """Return the last position, at or before `most`, to which the slot can be rolled back."""
        if most >= self.end:
            return self.end
        return max((mark for mark in self.marks if mark <= most), default=0)

    def cut_back(self, keep: int) -> SlotCheckpoints:
        """Return the record cut back to a position that `reach` returned."""
        if keep >= self.end:
            return self
        return SlotCheckpoints(tuple(mark for mark in self.marks if mark <= keep), keep, rule=self.rule)
