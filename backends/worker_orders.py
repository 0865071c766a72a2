"""Orders from a node to its worker, other than steps, and their answers, encoded as JSON in TEXT frames.

Each order has a `request` number, which its answers repeat. Unknown fields are rejected.
"""

from __future__ import annotations

from typing import Any

import msgspec

from backends.contract import (
    DEFAULT_REASONING,
    CallFormat,
    JsonScalar,
    Layers,
    LocalTime,
    PictureGrid,
    ReasoningFormat,
    Role,
    Sampling,
    StageConfig,
)


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="order", kw_only=True):
    """The base class of all orders and answers."""

    request: int


class OpenStage(Order, frozen=True, tag="open"):
    """An order to load a stage under the id of its pipeline. Answer: StageOpened or Failed."""

    pipeline: str  # 32 hex digits, the id in each frame
    epoch: int
    number: int  # Number for hidden states on the wire
    context: int  # maximum positions per slot
    memory_limit_bytes: int  # 0: none; otherwise the worker refuses to grow beyond it
    config: StageConfig


class CloseStage(Order, frozen=True, tag="close"):
    """An order to close a stage and release its memory. Answer: StageClosed."""

    pipeline: str


class BeginSequence(Order, frozen=True, tag="begin"):
    """An order to start a sequence in a slot of the last stage. The others need it only for `grids`.

    A token is sampled after each segment with `end >= due_from`. `history` contains the token ids before `due_from`
    that penalties take into account. When an answer is continued, the last `drawn` of these tokens were sampled
    earlier, here or on another machine. The grammar and the random numbers continue after them.

    Answer: SequenceBegun, or Failed if, for example, the grammar does not compile.
    """

    pipeline: str
    slot: int
    due_from: int
    sampling: Sampling
    history: tuple[int, ...] = ()
    drawn: int = 0
    logits: bool = False  # also send LOGITS frames, for tests
    grids: tuple[PictureGrid, ...] = ()  # its pictures with positions in two dimensions, in order


class LimitThreads(Order, frozen=True, tag="share"):
    """An order to use at most `most` threads for the steps of every stage. Answer: ThreadsLimited."""

    most: int


class OpenVocabulary(Order, frozen=True, tag="vocabulary"):
    """An order to load only the vocabulary of a GGUF file. Answer: VocabularyOpened, then several Pieces, or Failed."""

    path: str


class Tokenize(Order, frozen=True, tag="tokenize"):
    """An order to tokenize a text. Answer: Tokenized or Failed.

    special: whether to parse the names of control tokens as control tokens.
    """

    text: str
    special: bool = False
    bos: bool = True


class Render(Order, frozen=True, tag="render"):
    """An order to apply the chat template.

    Answer: Rendered or Failed. A Rendered that is not `last` is followed by Tokenized or Failed.

    now: the time at which the chat began, or None for the current time. If the template writes the date, a fixed time
    keeps the beginning of the prompt the same in later turns. options: additional template variables, such as
    `enable_thinking`. ids: whether to also return the token ids of the text, with the names of control tokens parsed.
    continues: whether the last message is an answer to be continued.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True
    now: LocalTime | None = None
    options: dict[str, JsonScalar] = {}
    ids: bool = False
    continues: bool = False


class OpenEmbedder(Order, frozen=True, tag="embedder"):
    """An order to load an embedding model, replacing the previous one. Answer: EmbedderOpened or Failed."""

    path: str
    context: int  # maximum tokens per text
    threads: int
    memory_limit_bytes: int  # 0: none


class Embed(Order, frozen=True, tag="embed"):
    """An order to embed a text, given as a string or as token ids. Answer: Embedded or Failed.

    cut: whether to truncate a text that is too long.
    """

    text: str = ""
    ids: tuple[int, ...] = ()
    cut: bool = False


class Rank(Order, frozen=True, tag="rank"):
    """An order to score with a reranker how well a text answers a query. Answer: Ranked or Failed."""

    query: str
    text: str


class OpenDraft(Order, frozen=True, tag="draft"):
    """An order to load a draft model for the model in the file `target`. Answer: DraftOpened or Failed."""

    path: str
    target: str
    context: int  # maximum positions of one slot
    slots: int
    threads: int
    memory_limit_bytes: int  # 0: none


class WriteDraft(Order, frozen=True, tag="write"):
    """An order to keep the first `keep` positions of a slot, read these tokens, and write up to `n_tokens` more.

    Answer: DraftWritten or Failed.
    """

    slot: int
    keep: int
    ids: tuple[int, ...]
    n_tokens: int


class OpenProjector(Order, frozen=True, tag="projector"):
    """An order to load a projector (mmproj) for the model at `path`. Answer: ProjectorOpened or Failed.

    most_rows: the limit for a picture of any size; 0 for the limit in the file.
    """

    path: str
    projector: str
    most_rows: int
    threads: int
    memory_limit_bytes: int  # 0: none


class SeePicture(Order, frozen=True, tag="see"):
    """An order to turn a picture into rows. Answer: several PictureParts, or Failed."""

    width: int
    height: int
    rgb: bytes


class ShowPicture(Order, frozen=True, tag="show"):
    """An order to keep rows of a picture for the sequence in a slot of the first stage.

    `first` is the id of the first row, and each next row has the next lower id. `begins`: whether these are the first
    rows for a new sequence, so that all rows for the slot's previous one are dropped. Answer: PictureShown or Failed.
    """

    pipeline: str
    slot: int
    first: int
    rows: bytes  # float32
    begins: bool


class ReadSlot(Order, frozen=True, tag="read_slot"):
    """An order to read a piece of the copy of a slot's state, beginning at `offset`. Answer: SlotPiece or Failed.

    Offset 0 makes the copy, unless it would have more than `most_bytes`. The last piece releases it, and so does an
    order with other limits that no copy satisfies.
    """

    pipeline: str
    epoch: int
    slot: int
    offset: int
    most_bytes: int


class WriteSlot(Order, frozen=True, tag="write_slot"):
    """An order to take a piece of the state of an empty slot. Answer: SlotWritten or Failed.

    The slot has its state once all `total_bytes` have arrived in order. Any step or FORGET for the slot cancels that.
    """

    pipeline: str
    epoch: int
    slot: int
    positions: int
    total_bytes: int
    offset: int
    data: bytes


class ProjectorOpened(Order, frozen=True, tag="projector_opened"):
    """A loaded projector. is_causal: whether a row of a picture sees only the rows before it."""

    width: int  # values of a row
    is_causal: bool
    memory_bytes: int


class PictureParts(Order, frozen=True, tag="parts"):
    """A part of what represents a picture in a prompt: token ids, or rows as float32.

    continues: whether these rows belong to the same picture or tile as those of the previous answer. n_columns: the
    rows in a line of the picture if their positions have two dimensions, and 0 otherwise.
    """

    ids: tuple[int, ...] = ()
    rows: bytes = b""
    continues: bool = False
    n_columns: int = 0
    last: bool = True


class PictureShown(Order, frozen=True, tag="shown"):
    """The answer that confirms that rows of a picture are kept."""


class SlotPiece(Order, frozen=True, tag="slot_piece"):
    """A piece of the copy of a slot's state. It is empty if there is no copy, for example because it is too large."""

    positions: int
    total_bytes: int
    data: bytes = b""


class SlotWritten(Order, frozen=True, tag="slot_written"):
    """The answer to WriteSlot, with how many bytes the stage now has. `positions` is 0 until the slot has its state."""

    n_bytes: int  # 0: the piece was refused
    positions: int = 0


class EmbedderOpened(Order, frozen=True, tag="embedder_opened"):
    width: int  # length of a vector
    memory_bytes: int


class DraftOpened(Order, frozen=True, tag="draft_opened"):
    memory_bytes: int


class DraftWritten(Order, frozen=True, tag="written"):
    """The tokens that a draft model wrote, and its own probability of each."""

    ids: tuple[int, ...]
    chances: tuple[float, ...]


class Embedded(Order, frozen=True, tag="embedded"):
    """The vector of a text as float32, not normalized. It is empty if the text has more than `context` tokens."""

    vector: bytes
    n_tokens: int


class Ranked(Order, frozen=True, tag="ranked"):
    """The reranker's raw score, or None if the query and the text together have more than `context` tokens."""

    score: float | None
    n_tokens: int


class StageOpened(Order, frozen=True, tag="opened"):
    memory_bytes: int  # resident memory of the worker after loading
    seconds: float
    device_bytes: int = 0  # memory on its device, if it has one
    device_work: dict[str, int] = {}  # on each of its devices, the part that is neither weights nor KV cache
    apart: float | None = None  # how far its device differs from the processor (DeviceCheck); None: not compared


class ThreadsLimited(Order, frozen=True, tag="shared"):
    used: int  # the largest number of threads in the stages' latest steps; 0: no stage is loaded


class StageClosed(Order, frozen=True, tag="closed"):
    """The answer that confirms the closing of a stage."""


class SequenceBegun(Order, frozen=True, tag="begun"):
    """The answer that confirms the start of a sequence."""


class VocabularyOpened(Order, frozen=True, tag="vocabulary_opened"):
    n_vocab: int
    end_tokens: tuple[int, ...]  # tokens that end an answer
    bos: int  # -1: none
    adds_bos: bool
    has_template: bool
    calls: CallFormat | None = None  # format of tool calls; None: not recognized
    reasoning: ReasoningFormat = DEFAULT_REASONING  # format of its thoughts
    markers: tuple[str, ...] = ()  # texts that the model reads as tokens with a meaning of their own


class Pieces(Order, frozen=True, tag="pieces"):
    """The bytes of consecutive tokens, beginning with the token `first`.

    Several of these answers follow VocabularyOpened, and `last` marks the final one. Control tokens have no bytes.
    """

    first: int
    pieces: tuple[bytes, ...]
    last: bool


class Tokenized(Order, frozen=True, tag="tokenized"):
    ids: tuple[int, ...]


class Rendered(Order, frozen=True, tag="rendered"):
    """The rendered chat.

    `folded` lists the parts of the chat that were rewritten because the template does not support them.
    """

    text: str
    folded: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()  # if requested and quickly available
    last: bool = True  # if not, Tokenized or Failed follows


class Failed(Order, frozen=True, tag="failed"):
    """The answer to a failed order. `code` is one of the app's reason codes, and `text` is the engine's message.

    If that message has a translatable sentence, `cause` is its code and `facts` are its parameters.
    """

    code: str
    text: str
    cause: str = ""
    facts: dict[str, str | int] = {}


WorkerOrder = (
    OpenStage
    | CloseStage
    | BeginSequence
    | LimitThreads
    | OpenVocabulary
    | Tokenize
    | Render
    | OpenEmbedder
    | Embed
    | Rank
    | OpenProjector
    | SeePicture
    | ShowPicture
    | OpenDraft
    | WriteDraft
    | ReadSlot
    | WriteSlot
)
WorkerAnswer = (
    StageOpened
    | StageClosed
    | SequenceBegun
    | ThreadsLimited
    | VocabularyOpened
    | Pieces
    | Tokenized
    | Rendered
    | EmbedderOpened
    | Embedded
    | Ranked
    | ProjectorOpened
    | PictureParts
    | PictureShown
    | DraftOpened
    | DraftWritten
    | SlotPiece
    | SlotWritten
    | Failed
)

__all__ = ["Layers", "Role", "WorkerAnswer", "WorkerOrder", "decode_answer", "decode_begin", "decode_order", "encode"]

encode = msgspec.json.Encoder().encode
decode_order = msgspec.json.Decoder(WorkerOrder).decode
decode_begin = msgspec.json.Decoder(BeginSequence).decode
decode_answer = msgspec.json.Decoder(WorkerAnswer).decode
