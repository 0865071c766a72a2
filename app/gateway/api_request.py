"""The common form of requests from all dialects, and the pieces of their answers. This module does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, UnsetType

from app.api.requests import SamplingValues
from app.core import wire_json
from app.core.errors import BadInput
from app.core.json_schema.partial_json import MAX_DEPTH, certain_part, to_json
from app.core.json_schema.schema_types import is_deeper, localize_references
from app.core.tools.reasoning import TEMPLATE_DEFAULT, Thinking
from app.decoding import decode
from app.gateway.answer_types import Poolhouse
from backends.contract import Sampling

Json = dict[str, Any]

DEFAULT_SAMPLING = SamplingValues().sampling(chance=0)  # the same defaults as in the window
MOST_ANSWERS = 4  # this and the next two: SAFETY.md 7
MOST_BIASES = 1024
MOST_STOPS, MOST_STOP_CHARS = 8, 256
MOST_TOOLS = 128
MOST_CALLS, MOST_CALLS_OF_ALL = 128, 4096  # per message, and per conversation
MOST_CUT = 8  # truncated calls per conversation
MAX_SEED = (1 << 32) - 2
NO_LIMIT = 1 << 31  # stands for no limit except the context

# bytes and log probability of the sampled token, then of the likeliest ones
TokenLogprobs = Sequence[tuple[bytes, float]]
THOUGHT = "reasoning_content"  # the field of an assistant message that contains its thought


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the calling program that the model may call."""

    name: str
    description: str
    parameters: Json
    # Used only by upstreams. In the pool, a required call always follows its schema.
    strict: bool | None = None

    @property
    def schema(self) -> Json:
        """Return the schema of the arguments, with references rewritten to a form that a grammar can resolve."""
        schema: Json = localize_references(self.parameters)
        return schema

    def as_json(self) -> Json:
        """Return the tool in the form that chat templates expect."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request parsed from any dialect. Exactly one of `messages` and `prompt` is set."""

    model: str
    messages: tuple[Json, ...] | None = None
    prompt: str | tuple[int, ...] | None = None
    sampling: Sampling = DEFAULT_SAMPLING
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    schema: object = None  # the answer must be JSON of this schema
    tools: tuple[Tool, ...] = ()
    must_call: str | None = None  # "" for any tool, or the name of one
    parallel_calls: bool | None = None  # None: not specified, which allows them
    calls_in_pieces: bool = False  # whether arguments are sent as they become certain
    thinking: Thinking = TEMPLATE_DEFAULT
    template_options: Json = field(default_factory=dict)  # additional variables of the chat template
    user: str = ""  # distinguishes the users of one program
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # files, by the markers in the messages
    extra_fields: Json = field(default_factory=dict)  # unparsed fields, used only by upstreams


@dataclass(slots=True)
class Origin:
    """The source of an answer: the pool or an upstream. It is set once it is known."""

    upstream: str = ""  # empty if the pool answers
    n_upstreams_tried: int = 0  # number of upstreams that may still answer
    with_pool: bool = False  # the pool wrote a part of an upstream's answer

    @property
    def named(self) -> Poolhouse | UnsetType:
        """Return the part of an answer that names the upstream, or UNSET if the pool answers."""
        if not self.upstream:
            return UNSET
        return Poolhouse(upstream=self.upstream, pool=True) if self.with_pool else Poolhouse(upstream=self.upstream)


def token_limit(*limits: int | None) -> int | None:
    """Return the first limit that is set, or None if none is set.

    As in llama.cpp's server, -1 means no limit, and 0 means that the prompt is processed and one token is
    generated.
    """
    limit = next((value for value in limits if value is not None), None)
    return limit if limit is None else NO_LIMIT if limit < 0 else max(1, limit)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer's text, with the logprobs of its tokens if they were requested."""

    index: int
    text: str
    likely: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class CallStart:
    """The start of a tool call. It is followed by pieces of the arguments, then by the complete call as a CallDone."""

    index: int
    number: int  # index among this answer's calls
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next piece of the arguments of the current call."""

    index: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtPiece:
    """A piece of the model's thinking before it answers.

    If `text_was_thought` is set, all text sent as the answer before this piece was in fact thinking.
    """

    index: int
    text: str
    text_was_thought: bool = False


@dataclass(frozen=True, slots=True)
class CallDone:
    """A complete tool call.

    `arguments` is a JSON object as text. If the answer was cut off, `arguments` is only the beginning of an object,
    and `half` is the text that the model wrote, if known.
    """

    index: int
    number: int  # index among this answer's calls
    id: str
    name: str
    arguments: str
    half: str | None = None
    was_begun: bool = False  # a CallStart preceded it

    @property
    def values(self) -> Json:
        """Return the complete part of the arguments, or {} if they are nested too deeply to be encoded."""
        values = parse_arguments(self.arguments) or {}
        return {} if is_deeper(values, MAX_DEPTH) else values


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The end of one answer, with its statistics."""

    index: int
    reason: str  # stop, length or calls
    stop: str | None  # the stop string that ended the answer
    prompt_tokens: int
    reused_tokens: int
    answer_tokens: int
    queued_s: float
    ttft_s: float
    decode_tok_s: float
    thought_tokens: int = 0  # included in the answer's tokens


Piece = TextPiece | ThoughtPiece | CallStart | CallArguments | CallDone | AnswerEnd


@dataclass(slots=True)
class CollectedAnswer:
    """The pieces of one answer that have arrived so far."""

    said: list[str] = field(default_factory=list)  # pieces of its text, joined only when needed
    n_said: int = 0  # characters
    thoughts: list[str] = field(default_factory=list)
    likely: list[TokenLogprobs] = field(default_factory=list)
    calls: list[CallDone] = field(default_factory=list)
    end: AnswerEnd | None = None

    def add(self, piece: Piece) -> None:
        match piece:
            case TextPiece():
                self.said.append(piece.text)
                self.n_said += len(piece.text)
                self.likely += piece.likely
            case ThoughtPiece():
                if piece.text_was_thought:
                    self.thoughts += self.said
                    self.said.clear()
                    self.n_said = 0
                self.thoughts.append(piece.text)
            case CallDone():
                self.calls.append(piece)
            case AnswerEnd():
                self.end = piece

    @property
    def text(self) -> str:
        return "".join(self.said)

    @property
    def thought(self) -> str:
        return "".join(self.thoughts).strip()

    @property
    def ended(self) -> AnswerEnd:
        assert self.end is not None
        return self.end


def with_thought(message: Json, thought: str | None) -> Json:
    """Return an assistant message with its thought added."""
    return {**message, THOUGHT: thought} if thought else message


def parse_arguments(text: str) -> Json | None:
    """Return the complete part of a call's arguments as an object, or None if the text is not an object."""
    if (parsed := parse_object(text)) is not None:
        return parsed
    try:
        return parse_object(to_json(certain_part(text)))
    except ValueError:
        return None


def parse_object(text: str) -> Json | None:
    """Return the object in a JSON text, or None if the text is not a JSON object."""
    try:
        data = wire_json.replace_lone_surrogates((text or "{}").encode())
        return decode(data, Json)
    except (ValueError, RecursionError):
        return None


def text_of(content: object, text_kinds: Sequence[str] = ("text",)) -> str:
    """Return the text of a message's content, joining its parts if necessary. Raises BadInput for other content."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if not isinstance(part, dict) or kind not in text_kinds:
            raise BadInput("api_content_unsupported", kind=str(kind)[:40])
        text = part.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            raise BadInput("api_part_without_text", kind=str(kind))
        texts.append(text)
    return "\n".join(texts)
