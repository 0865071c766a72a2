"""The contract between engines and the app: a run of layers, its inputs and its outputs. Uses only the standard
library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

LLAMACPP = "llamacpp"  # the engine that computes layers
KEPT_STATES = 2  # of a slot at most: after its latest prompts, where a state cannot be cut back otherwise
FORM_TOO_HEAVY = -1  # sampled where an answer cannot keep to its form any more: no token, and its end
MAX_BATCH_TOKENS = 512  # rows of one step, over all its segments (SAFETY.md 5)
MOST_LIKELY = 20  # tokens told beside a sampled one: as many as the APIs of this field offer
NO_MEMORY = ("bad_alloc", "insufficient memory", "failed to allocate")  # llama.cpp's words for it
# Versions of llama-cpp-python with which each cut of each family was proved (docs/families.md).
PROVED_ENGINES = ("0.3.36",)
EXPONENT_BYTES = 2  # of a row in f16
BLOCK_VALUES = 32  # in 8 bits, with a scale of their own
SCALE_BYTES = 2
OUTLIER_BYTES = 2 + 4  # its place in the row, its value
# One outlier for so many values: together with the scales 1.15 bytes a value at most, from a width of 72 on.
VALUES_PER_OUTLIER = 72
Scalar = str | int | float | bool | None  # of JSON
CELLS_STEP = 256  # llama.cpp rounds the cells of a slot that has its own up to a multiple of this


def is_proved(version: str) -> bool:
    """Return whether this engine version may compute parts of models.

    A suffix after a plus sign describes the build and is ignored.
    """
    return version.partition("+")[0] in PROVED_ENGINES


@dataclass(frozen=True, slots=True, order=True)
class Layers:
    """A contiguous, non-empty run of layers from `first` (included) to `last` (excluded)."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise ValueError(f"no run of layers: {self.first} to {self.last}")

    def __len__(self) -> int:
        return self.last - self.first


class Role(StrEnum):
    """The position of a run in the pipeline, which determines its inputs and outputs."""

    FIRST = "first"  # token ids in, hidden states out
    MIDDLE = "middle"  # hidden states in and out
    LAST = "last"  # hidden states in, logits and sampled tokens out
    WHOLE = "whole"  # token ids in, logits and sampled tokens out


def n_blocks(width: int) -> int:
    """Return the number of blocks in an 8-bit row. The last one may be short."""
    return -(-width // BLOCK_VALUES)


def n_outliers(width: int) -> int:
    """Return how many values of an 8-bit row are sent exactly."""
    return max(1, width // VALUES_PER_OUTLIER)


class Number(IntEnum):
    """The encoding of hidden-state values on the wire. The enum value is the number byte of the frame."""

    F32 = 0
    F16 = 1  # an int16 power of two for each row, then one half for each value
    Q8 = 2  # a row's few outliers exactly, a bfloat16 scale for each 32 values, a signed byte for each
    IDS = 3  # token ids as int32, on the pipe to one's own worker only

    def row_bytes(self, width: int) -> int:
        """Return the size in bytes of one row of `width` values, or of one token id."""
        match self:
            case Number.F32:
                return 4 * width
            case Number.F16:
                return EXPONENT_BYTES + 2 * width
            case Number.Q8:
                return OUTLIER_BYTES * n_outliers(width) + SCALE_BYTES * n_blocks(width) + width
            case Number.IDS:
                return 4


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A moment in local time. The UTC offset is included because a worker may not know its time zone."""

    epoch_seconds: float  # since 1970, UTC
    utc_offset_seconds: int = 0  # of that place in that moment


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
class Tokens:
    """The token ids of a step, segment after segment."""

    segments: tuple[Segment, ...]
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden states of a step: float32 `[n_rows, width]`, row-major, segment after segment."""

    segments: tuple[Segment, ...]
    rows: memoryview


@dataclass(frozen=True, slots=True)
class Logits:
    """Scores for the next token: float32 `[len(segments), n_vocab]`, one row for the last position of each due
    segment.

    Valid until the stage's next step.
    """

    segments: tuple[Segment, ...]
    rows: memoryview


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters, with llama.cpp's names and meanings. Temperature 0 is greedy."""

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
    grammar: str = ""  # GBNF; a JSON schema is turned into one before it comes here
    likely: int | None = None  # tell with each token its log probability, and of so many of the likeliest

    @property
    def is_special(self) -> bool:
        """Return whether a grammar applies or scores are modified before sampling."""
        changes = (self.repeat_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)
        return bool(self.grammar or self.logit_bias) or changes


GREEDY = Sampling(temperature=0.0)


# The measured effect of a q8_0 KV cache on answers: the Guide's 200 questions, greedy, 34 tokens of answer on average
# (`python -m guide.kv`). Other models and longer texts were not measured.
KV_ANSWERS = 200
KV_SAME_ANSWERS = 197  # answers that stayed the same token for token


class KvType(StrEnum):
    """The number type of the KV cache."""

    F16 = "f16"
    Q8_0 = "q8_0"  # a 16-bit scale for 32 signed bytes

    def bytes_of(self, f16_bytes: int) -> int:
        """Return the size of values that take `f16_bytes` in f16."""
        return f16_bytes if self is KvType.F16 else -(-f16_bytes * 34 // 64)


@dataclass(frozen=True, slots=True)
class Traits:
    """The special treatment that a model's family needs, stated as facts so that engines need not know families."""

    input_scale: float = 1.0  # each value that enters is multiplied by it
    position_planes: int = 1  # position numbers of a hidden state that enters: the last plane is 0
    boundary: str = "l_out"  # the graph's tensor that leaves: this, "-" and the last layer's number
    # Layers carry a state: it can be cut back to the end of a recent prompt only (KEPT_STATES), and the
    # prompts of two sequences are not computed at once.
    recurrent: bool = False


USUAL = Traits()


@dataclass(frozen=True, slots=True)
class Keep:
    """The rule that decides which recurrent states of a slot are kept (see Kept). It is the same in all stages."""

    marks: int = KEPT_STATES  # at most
    least_rows: int = 1  # of a prompt after which one is kept; after a shorter one it is read again


KEEP_ALL = Keep()


@dataclass(frozen=True, slots=True)
class StageConfig:
    """Everything an engine needs to load one run of layers. Sizes are fixed for the lifetime of the stage."""

    engine: str  # LLAMACPP or "fake"
    path: str  # the stage file, or the whole model's for Role.WHOLE
    # Role.FIRST: the file whose rows of `token_embd.weight` are looked up; Role.LAST: the file whose
    # vocabulary grammars need, or empty
    embedding_path: str
    role: Role
    layers: Layers
    width: int
    slots: int  # sequences at once
    kv_cells: int  # positions kept over all slots
    batch_rows: int  # most rows of one step, at most MAX_BATCH_TOKENS
    threads: int  # at most
    flash_attention: bool = True  # llama.cpp's own default: faster prefill, far less memory
    apart: bool = False  # each slot has cells of its own, an equal share; else all share them
    traits: Traits = USUAL
    kv: KvType = KvType.F16
    keep: Keep = KEEP_ALL
    begin_threads: int = 0  # looks for the best number from here on (thread_choice.py); 0: always `threads`
    any_engine: bool = False  # also one with which no cut was proved: for a trial, and the proof itself


def keeps_apart(slots: int, kv_cells: int, context: int) -> bool:
    """Return whether the cells suffice, in whole steps, to give every slot its own.

    When slots share cells, attention visits all of them and masks those of other slots. With 8 answers of 500
    tokens this made a decode step 1.4 times as long (measured on one core).
    """
    return slots > 1 and kv_cells >= slots * context and kv_cells % (slots * CELLS_STEP) == 0


class Stage(Protocol):
    """A loaded run of layers. Called from one thread only; calls may block."""

    def forward(self, batch: Tokens | Hidden, due: Sequence[int]) -> Hidden | Logits:
        """Compute one step and keep its KV.

        due: indexes of the segments whose last position needs logits; only the last run uses it. The last run
        returns Logits (one row for each due segment, in order), the others return Hidden. Raises StageError if the
        step cannot be computed.
        """
        ...

    def forget(self, slot: int, keep: int = 0) -> None:
        """Drop the KV of a slot from position `keep` onward."""
        ...

    def close(self) -> None:
        """Release the memory."""
        ...


class CodedError(Exception):
    """An error whose text gives the reason. `cause` is the code of its translatable sentence, and `facts` are its
    parameters."""

    def __init__(self, text: str = "", cause: str = "", **facts: str | int) -> None:
        super().__init__(text)
        self.cause, self.facts = cause, facts


class StageError(CodedError):
    """An engine's failure to load or compute. The text gives the reason."""


class OutOfMemory(StageError):
    """A failed allocation: this machine has too little memory."""


class NotFinite(StageError):
    """Non-finite numbers computed by a model, whose file is damaged or was made incorrectly."""


class BadSlots(StageError):
    """A step that failed because of the contents of these slots. Its other slots were sound.

    The run itself is intact. `code` is a reason code of the app.
    """

    def __init__(self, code: str, slots: Sequence[int], words: str) -> None:
        super().__init__(words)
        self.code, self.slots = code, tuple(slots)


class UnprovedEngine(StageError):
    """An engine version that was never tested with parts of a model, so its results might be wrong."""


class TemplateFailed(CodedError):
    """A template that could not be applied. The text gives the reason."""


class Refused(TemplateFailed):
    """A template that could not be applied to this chat. It may accept another one."""


class Objected(Refused):
    """A chat rejected by the template itself. The text is the template author's."""


ID = "\ue000"  # stands in signs for a call's id, which a model makes up
NUMBER = "\ue001"  # and this for the number of a call
NAME = "\ue002"  # and this for the name of the tool, where it is written twice


class Payload(StrEnum):
    """The syntax of a tool call between its markers."""

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
    """The form in which a chat template accepts the earlier tool calls of a conversation."""

    ids: Ids = Ids.ANY
    is_single: bool = False  # it writes one call of a message at most
    takes_text: bool = False  # it takes their arguments as JSON text
    writes_calls: bool = True  # else they are written into the text of their message


@dataclass(frozen=True, slots=True)
class CallFormat:
    """The markers around tool calls, exactly as the template writes them, whitespace included.

    Several calls are written `section lead … trail between lead … trail section_end`, and each call `head NAME
    named ARGUMENTS rest`.
    """

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


@dataclass(frozen=True, slots=True)
class MessageSigns:
    """The markers of a model that writes several messages, each with a header naming its recipient: gpt-oss, Muse."""

    start: str
    header_end: str
    ends: tuple[str, ...]
    to_reader: str  # the header of the answer


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """The format in which a model writes its reasoning, and the parts of it that its chat template reads."""

    begin: str
    end: tuple[str, ...]
    messages: MessageSigns | None = None  # thoughts are messages of their own
    answer_begin: tuple[str, ...] = ()  # signs around the answer, which are no part of it
    answer_end: tuple[str, ...] = ()
    switch_on: dict[str, Scalar] = field(default_factory=dict)  # variables of the template
    switch_off: dict[str, Scalar] | None = None  # None: it cannot be turned off
    effort_option: str = ""  # the variable that says how hard to think; empty: none does
    efforts: tuple[str, ...] = ()
    is_habit: bool = False  # the template says nothing of thoughts


# Most models that think learned these signs; one whose template says nothing of thoughts may write them as well.
HABIT = ReasoningFormat("<think>", ("</think>",), is_habit=True)


@dataclass(frozen=True, slots=True)
class Kept:
    """One slot of a recurrent model: its number of positions, and those after which its state was kept.

    Engine and scheduler each derive this from the steps alone. A recurrent state cannot be cut back to any position
    as a KV cache can, so it is kept when a single-row segment follows a longer one, that is, at the end of a prompt
    before its answer. The next turn continues from the end of the slot or, if the answer comes back in different
    words, from the end of the prompt before it. If that prompt added fewer than Keep.least_rows since the previous
    kept state, its state is not kept and it is read again.
    """

    marks: tuple[int, ...] = ()
    end: int = 0
    of_prompt: bool = False  # what was computed last had several rows
    rule: Keep = KEEP_ALL

    def keeps(self, segment: Segment) -> bool:
        """Return whether the state is kept before this segment is computed."""
        ends = self.of_prompt and segment.n_tokens == 1 and segment.pos == self.end
        new = self.end - max(self.marks, default=0)
        return ends and self.rule.marks > 0 and (not new or new >= self.rule.least_rows)

    def after(self, segment: Segment) -> Kept:
        """Return the slot as it is after computing the segment."""
        marks = self.marks
        if self.keeps(segment) and self.end not in marks:
            marks = (*marks, self.end)[-self.rule.marks :]
        return Kept(marks, segment.end, segment.n_tokens > 1, self.rule)

    def reach(self, most: int) -> int:
        """Return the last position, at most `most`, to which the slot can be cut back."""
        if most >= self.end:
            return self.end
        return max((mark for mark in self.marks if mark <= most), default=0)

    def cut_back(self, keep: int) -> Kept:
        """Return the slot cut back to a position that `reach` returned."""
        if keep >= self.end:
            return self
        return Kept(tuple(mark for mark in self.marks if mark <= keep), keep, rule=self.rule)
