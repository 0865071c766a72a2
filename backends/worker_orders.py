"""Orders of a node to its worker beside steps, and their answers: JSON in TEXT frames.

Every order carries a `request` number; its answer carries the same. Unknown fields are refused.
"""

from __future__ import annotations

from typing import Any

import msgspec

from backends.contract import HABIT, CallFormat, Layers, LocalTime, ReasoningFormat, Role, Sampling, Scalar, StageConfig


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="order", kw_only=True):
    """The base of all orders and answers."""

    request: int


class OpenStage(Order, frozen=True, tag="open"):
    """Load a run of layers and call it by the pipeline's id from now on. Answer: Opened or Failed."""

    pipeline: str  # 32 hex digits, as in each frame
    epoch: int
    number: int  # Number of hidden states on the wire
    context: int  # most positions of one slot
    memory_limit_bytes: int  # 0: none; else the worker refuses to grow beyond it
    config: StageConfig


class CloseStage(Order, frozen=True, tag="close"):
    """An order to release a run's memory. Answer: Closed."""

    pipeline: str


class Begin(Order, frozen=True, tag="begin"):
    """An order to start a sequence in a slot of the last run: how to sample, and from which position on.

    A token is sampled after every segment whose `end >= due_from`. `history` are the token ids before `due_from` that
    penalties must know. When an answer is continued, its last `drawn` ids were sampled here or elsewhere before:
    grammar and random numbers continue after them. Answer: Begun or Failed (a grammar that does not compile).
    """

    pipeline: str
    slot: int
    due_from: int
    sampling: Sampling
    history: tuple[int, ...] = ()
    drawn: int = 0
    logits: bool = False  # also send LOGITS frames, for tests


class Share(Order, frozen=True, tag="share"):
    """An order to use at most so many threads for the steps of every run. Answer: Shared."""

    most: int


class OpenVocabulary(Order, frozen=True, tag="vocabulary"):
    """Load only the vocabulary of a GGUF. Answer: Vocabulary, then the pieces as TEXT frames' Pieces."""

    path: str


class Tokenize(Order, frozen=True, tag="tokenize"):
    """An order to tokenize a text. `special`: names of control tokens become those tokens. Answer: Tokenized."""

    text: str
    special: bool = False
    bos: bool = True


class Render(Order, frozen=True, tag="render"):
    """An order to apply the chat template.

    Answer: Rendered or Failed; after one that is not the `last` also Tokenized or Failed. now: for templates that name
    the date: when the chat began, so that its later turns begin alike; None: this moment. options: further variables of
    the template, such as `enable_thinking`. ids: the ids of the text are requested too, with the names of control
    tokens as these tokens. continues: the last message is an answer to be continued.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True
    now: LocalTime | None = None
    options: dict[str, Scalar] = {}
    ids: bool = False
    continues: bool = False


class OpenEmbedder(Order, frozen=True, tag="embedder"):
    """Load a whole embedding model in place of the one before. Answer: EmbedderOpened or Failed."""

    path: str
    context: int  # most tokens of a text
    threads: int
    memory_limit_bytes: int  # 0: none


class Embed(Order, frozen=True, tag="embed"):
    """An order to embed a text or its token ids. Answer: Embedded or Failed.

    cut: read only the first tokens of a text that is too long.
    """

    text: str = ""
    ids: tuple[int, ...] = ()
    cut: bool = False


class Rank(Order, frozen=True, tag="rank"):
    """An order to score how well a text answers a query, by a reranker. Answer: Ranked or Failed."""

    query: str
    text: str


class EmbedderOpened(Order, frozen=True, tag="embedder_opened"):
    width: int  # values of a vector
    memory_bytes: int


class Embedded(Order, frozen=True, tag="embedded"):
    """`vector` are float32, not normalised; empty: the text has more than `context` tokens."""

    vector: bytes
    n_tokens: int


class Ranked(Order, frozen=True, tag="ranked"):
    """`score` is as the model gives it; None: both together have more than `context` tokens."""

    score: float | None
    n_tokens: int


class Opened(Order, frozen=True, tag="opened"):
    memory_bytes: int  # resident bytes of the worker after loading
    seconds: float


class Shared(Order, frozen=True, tag="shared"):
    used: int  # threads that latest steps were computed with, the most of all runs; 0: none is loaded


class Closed(Order, frozen=True, tag="closed"):
    """Answer: the run is gone."""


class Begun(Order, frozen=True, tag="begun"):
    """Answer: the slot is ready."""


class Vocabulary(Order, frozen=True, tag="vocabulary_opened"):
    n_vocab: int
    end_tokens: tuple[int, ...]  # tokens that end an answer
    bos: int  # -1: none
    adds_bos: bool
    has_template: bool
    calls: CallFormat | None = None  # of tools, as its template writes them; None: in no way we know
    reasoning: ReasoningFormat = HABIT  # how its template has thoughts written


class Pieces(Order, frozen=True, tag="pieces"):
    """The bytes of tokens `first`, `first + 1`, …; empty for control tokens. `last` ends the list."""

    first: int
    pieces: tuple[bytes, ...]
    last: bool


class Tokenized(Order, frozen=True, tag="tokenized"):
    ids: tuple[int, ...]


class Rendered(Order, frozen=True, tag="rendered"):
    """The rendered chat.

    `folded`: what the template does not accept and was passed in another way: "system", "tools", "turns".
    """

    text: str
    folded: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()  # if they were wanted, and took no time worth telling apart
    last: bool = True  # else Tokenized comes, or Failed


class Failed(Order, frozen=True, tag="failed"):
    """The order was not carried out; `code` is a reason code of the app, `text` the engine's words.

    cause: the code of those words in the app's languages, where they have one, and its facts.
    """

    code: str
    text: str
    cause: str = ""
    facts: dict[str, str | int] = {}


Asked = OpenStage | CloseStage | Begin | Share | OpenVocabulary | Tokenize | Render | OpenEmbedder | Embed | Rank
Answer = (
    Opened
    | Closed
    | Begun
    | Shared
    | Vocabulary
    | Pieces
    | Tokenized
    | Rendered
    | EmbedderOpened
    | Embedded
    | Ranked
    | Failed
)

__all__ = [
    "Answer", "Asked", "Layers", "Role", "decode_answer", "decode_begin", "decode_order", "encode",
]  # fmt: skip

encode = msgspec.json.Encoder().encode
decode_order = msgspec.json.Decoder(Asked).decode
decode_begin = msgspec.json.Decoder(Begin).decode
decode_answer = msgspec.json.Decoder(Answer).decode
