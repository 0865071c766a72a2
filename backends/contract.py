"""The contract of engine and app: a run of layers, its inputs and its outputs. Standard library only."""

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
    """Return whether parts of models may be computed with this version.

    A suffix after a plus tells how it was compiled.
    """
    return version.partition("+")[0] in PROVED_ENGINES


@dataclass(frozen=True, slots=True, order=True)
class Layers:
    """A contiguous run of layers, `first` included, `last` excluded. Never empty."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise ValueError(f"no run of layers: {self.first} to {self.last}")

    def __len__(self) -> int:
        return self.last - self.first


class Role(StrEnum):
    """The place of a run in the pipeline, which decides its inputs and outputs."""

    FIRST = "first"  # token ids in, hidden states out
    MIDDLE = "middle"  # hidden states in and out
    LAST = "last"  # hidden states in, logits and sampled tokens out
    WHOLE = "whole"  # token ids in, logits and sampled tokens out


def n_blocks(width: int) -> int:
    """Return how many blocks a row has in 8 bits; the last one may be short."""
    return -(-width // BLOCK_VALUES)


def n_outliers(width: int) -> int:
    """Return how many of a row's values are carried exactly beside its 8 bits."""
    return max(1, width // VALUES_PER_OUTLIER)


class Number(IntEnum):
    """The encoding of a hidden-state value on the wire; the enum value is the frame's number byte."""

    F32 = 0
    F16 = 1  # an int16 power of two for each row, then one half for each value
    Q8 = 2  # a row's few outliers exactly, a bfloat16 scale for each 32 values, a signed byte for each
    IDS = 3  # token ids as int32, on the pipe to one's own worker only

    def row_bytes(self, width: int) -> int:
        """Return the bytes of one row: of `width` values, or of one token id."""
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
    """A moment as the clocks of one place show it. The place is sent too: a worker may not know where it is."""

    epoch_seconds: float  # since 1970, UTC
    utc_offset_seconds: int = 0  # of that place in that moment


@dataclass(frozen=True, slots=True)
class Segment:
    """`n_tokens` consecutive positions of the sequence in `slot`, from position `pos` on."""

    slot: int
    n_tokens: int
    pos: int

    @property
    def end(self) -> int:
        return self.pos + self.n_tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of a step, the segments' rows one after another."""

    segments: tuple[Segment, ...]
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states of a step: float32 `[n_rows, width]`, row-major, the segments one after another."""

    segments: tuple[Segment, ...]
    rows: memoryview


@dataclass(frozen=True, slots=True)
class Logits:
    """Scores for the next token: float32 `[len(segments), n_vocab]`, one row for the last position of
    each segment that was due one. Valid until the stage's next step."""

    segments: tuple[Segment, ...]
    rows: memoryview


@dataclass(frozen=True, slots=True)
class Sampling:
    """The parameters that choose the next token. Temperature 0 is greedy; names and meanings are llama.cpp's."""

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
        """Return whether more than drawing is needed: a grammar is followed, or scores are changed before."""
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
        """Return the bytes of values that take so many in f16."""
        return f16_bytes if self is KvType.F16 else -(-f16_bytes * 34 // 64)


@dataclass(frozen=True, slots=True)
class Traits:
    """The special treatment that a model's family needs, as facts, so that no engine knows families."""

    input_scale: float = 1.0  # each value that enters is multiplied by it
    position_planes: int = 1  # position numbers of a hidden state that enters: the last plane is 0
    boundary: str = "l_out"  # the graph's tensor that leaves: this, "-" and the last layer's number
    # Layers carry a state: it can be cut back to the end of a recent prompt only (KEPT_STATES), and the
    # prompts of two sequences are not computed at once.
    recurrent: bool = False


USUAL = Traits()


@dataclass(frozen=True, slots=True)
class Keep:
    """The rule for which recurrent states are kept for a slot (see Kept); all stages have the same one."""

    marks: int = KEPT_STATES  # at most
    least_rows: int = 1  # of a prompt after which one is kept; after a shorter one it is read again


KEEP_ALL = Keep()


@dataclass(frozen=True, slots=True)
class StageConfig:
    """All an engine needs to load one run of layers. Sizes are fixed for the life of the stage."""

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
    """Return whether every slot can have cells of its own: there are enough, in whole steps.

    Where slots share cells, attention looks at all of them and skips the others': with 8 answers of 500 tokens that
    made a decode step 1.4 times as long (measured, one core).
    """
    return slots > 1 and kv_cells >= slots * context and kv_cells % (slots * CELLS_STEP) == 0


class Stage(Protocol):
    """A run of layers, loaded and ready. Called from one thread only; may block."""

    def forward(self, batch: Tokens | Hidden, due: Sequence[int]) -> Hidden | Logits:
        """Compute one step and keep its KV.

        due: indexes of the batch's segments whose last position needs logits; only the last run looks
        at it. Returns Logits (one row for each due segment, in order) from the last run, Hidden from
        others. Raises StageError when the step cannot be computed.
        """
        ...

    def forget(self, slot: int, keep: int = 0) -> None:
        """Drop the KV of a slot from position `keep` on."""
        ...

    def close(self) -> None:
        """Release the memory."""
        ...


class CodedError(Exception):
    """An error whose text says why. `cause` is the code of that text in the app's languages, with its facts."""

    def __init__(self, text: str = "", cause: str = "", **facts: str | int) -> None:
        super().__init__(text)
        self.cause, self.facts = cause, facts


class StageError(CodedError):
    """A failure of an engine to load or compute; the text says why."""


class OutOfMemory(StageError):
    """An allocation failed: this machine has too little memory."""


class NotFinite(StageError):
    """A model computed non-finite numbers: its file is damaged, or was made wrongly."""


class BadSlots(StageError):
    """A step that failed because of what these slots hold; the other slots' part of it was sound.

    The run itself is intact. `code` is a reason code of the app.
    """

    def __init__(self, code: str, slots: Sequence[int], words: str) -> None:
        super().__init__(words)
        self.code, self.slots = code, tuple(slots)


class UnprovedEngine(StageError):
    """An engine that was never tested with parts of a model, so its results might be wrong."""


class TemplateFailed(CodedError):
    """The template could not be applied; the text says why."""


class Refused(TemplateFailed):
    """The template could not be applied to this chat; another one may work."""


class Objected(Refused):
    """The template itself says that it does not take this chat, in its author's words."""


ID = "\ue000"  # stands in signs for a call's id, which a model makes up
NUMBER = "\ue001"  # and this for the number of a call
NAME = "\ue002"  # and this for the name of the tool, where it is written twice


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


@dataclass(frozen=True, slots=True)
class MessageSigns:
    """Signs of a model that writes several messages, each with a header that says to whom: gpt-oss, Muse."""

    start: str
    header_end: str
    ends: tuple[str, ...]
    to_reader: str  # the header of the answer


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """The format of a model's thoughts in what it writes, and what its chat template reads of them."""

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
    """One slot of a recurrent model: how many positions it holds, and after which of them its state was kept.

    Engine and scheduler work this out alike, from the steps alone. A recurrent state cannot be cut back by position as
    a KV cache can, so it is kept where a row of its own follows a longer segment: at the end of a prompt, before its
    answer. The next turn continues from the end of what was computed or, where the answer comes back written otherwise,
    from the end of the prompt before it. If the prompt added too little since the state before (Keep.least_rows), it is
    read again instead.
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
        """Return the slot after the segment was computed."""
        marks = self.marks
        if self.keeps(segment) and self.end not in marks:
            marks = (*marks, self.end)[-self.rule.marks :]
        return Kept(marks, segment.end, segment.n_tokens > 1, self.rule)

    def reach(self, most: int) -> int:
        """Return the position, `most` at most, to which it can be cut back."""
        if most >= self.end:
            return self.end
        return max((mark for mark in self.marks if mark <= most), default=0)

    def cut_back(self, keep: int) -> Kept:
        """Return the slot after it was cut back to the position that `reach` returned."""
        if keep >= self.end:
            return self
        return Kept(tuple(mark for mark in self.marks if mark <= keep), keep, rule=self.rule)
