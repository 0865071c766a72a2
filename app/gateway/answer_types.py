"""The types of all answers and errors of the API.

The routes build their answers from them, and the OpenAPI document is generated from them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Status = Literal["in_progress", "completed", "incomplete"]
Reason = Literal["stop", "length", "tool_calls"]
TextReason = Literal["stop", "length"]
Capability = Literal["completion", "tools", "thinking", "embedding", "vision"]
StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class Exact(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An object with these fields and no others."""


class Poolhouse(Exact):
    """The part of an answer that names the upstream if the pool did not write all of it."""

    upstream: str
    pool: bool | UnsetType = UNSET  # whether the pool wrote a part of the answer


class WithOrigin(Exact):
    """An answer that names its source if it does not come from the pool."""

    poolhouse: Poolhouse | UnsetType = UNSET


# OpenAI's API: responses, models, chat and text completions, embeddings


class OutputText(Exact, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class OutputMessage(Exact, tag_field="type", tag="message"):
    id: str
    status: Status
    role: Literal["assistant"]
    content: list[OutputText]


class ReasoningText(Exact, tag_field="type", tag="reasoning_text"):
    text: str


class ReasoningItem(Exact, tag_field="type", tag="reasoning"):
    """The model's thinking."""

    id: str
    status: Status
    summary: list[Any]
    content: list[ReasoningText]


class FunctionCall(Exact, tag_field="type", tag="function_call"):
    id: str
    status: Status
    call_id: str
    name: str
    arguments: str
    namespace: str | UnsetType = UNSET


OutputItem = OutputMessage | ReasoningItem | FunctionCall


class InputDetails(Exact):
    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(Exact):
    reasoning_tokens: int


class ResponseUsage(Exact):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class Incomplete(Exact):
    reason: Literal["max_output_tokens"]


class ResponseTool(Exact, tag_field="type", tag="function"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool


class ResponseNamespace(Exact, tag_field="type", tag="namespace"):
    name: str
    description: str
    tools: list[ResponseTool]


class Response(WithOrigin, kw_only=True):
    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    error: None
    incomplete_details: Incomplete | None
    model: str
    output: list[OutputItem]
    usage: ResponseUsage | None
    previous_response_id: None
    store: bool
    instructions: str | None
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    parallel_tool_calls: bool
    tool_choice: str | dict[str, Any]
    tools: list[ResponseTool | ResponseNamespace]
    metadata: dict[str, str]


class ResponseTokens(Exact):
    object: Literal["response.input_tokens"]
    input_tokens: int


class _Numbered(Exact):
    sequence_number: int


class ResponseCreated(_Numbered, tag_field="type", tag="response.created"):
    response: Response


class ResponseInProgress(_Numbered, tag_field="type", tag="response.in_progress"):
    response: Response


class ResponseCompleted(_Numbered, tag_field="type", tag="response.completed"):
    response: Response


class ResponseIncomplete(_Numbered, tag_field="type", tag="response.incomplete"):
    response: Response


class OutputItemAdded(_Numbered, tag_field="type", tag="response.output_item.added"):
    output_index: int
    item: OutputItem


class OutputItemDone(_Numbered, tag_field="type", tag="response.output_item.done"):
    output_index: int
    item: OutputItem


class _InItem(_Numbered):
    item_id: str
    output_index: int


class ContentPartAdded(_InItem, tag_field="type", tag="response.content_part.added"):
    content_index: int
    part: OutputText


class ContentPartDone(_InItem, tag_field="type", tag="response.content_part.done"):
    content_index: int
    part: OutputText


class OutputTextDelta(_InItem, tag_field="type", tag="response.output_text.delta"):
    content_index: int
    delta: str
    logprobs: list[Any]


class OutputTextDone(_InItem, tag_field="type", tag="response.output_text.done"):
    content_index: int
    text: str
    logprobs: list[Any]


class ReasoningTextDelta(_InItem, tag_field="type", tag="response.reasoning_text.delta"):
    content_index: int
    delta: str


class ReasoningTextDone(_InItem, tag_field="type", tag="response.reasoning_text.done"):
    content_index: int
    text: str


class ArgumentsDelta(_InItem, tag_field="type", tag="response.function_call_arguments.delta"):
    delta: str


class ArgumentsDone(_InItem, tag_field="type", tag="response.function_call_arguments.done"):
    name: str
    arguments: str


class ResponseFailed(_Numbered, tag_field="type", tag="error"):
    code: str
    message: str
    param: str | None


ResponseEvent = (
    ResponseCreated | ResponseInProgress | ResponseCompleted | ResponseIncomplete | OutputItemAdded | OutputItemDone
    | ReasoningTextDelta | ReasoningTextDone | ContentPartAdded | ContentPartDone | OutputTextDelta | OutputTextDone
    | ArgumentsDelta | ArgumentsDone | ResponseFailed
)  # fmt: skip


class Cause(Exact):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(Exact):
    """An error in OpenAI's format."""

    error: Cause


class Model(Exact):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(Exact):
    object: Literal["list"]
    data: list[Model]


class CachedTokens(Exact):
    cached_tokens: int


class ThoughtTokens(Exact):
    reasoning_tokens: int


class Usage(Exact):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens
    completion_tokens_details: ThoughtTokens | UnsetType = UNSET


class CalledFunction(Exact):
    name: str
    arguments: str


class Call(Exact):
    id: str
    type: Literal["function"]
    function: CalledFunction


class FunctionDelta(Exact):
    arguments: str
    name: str | UnsetType = UNSET


class CallDelta(Exact):
    """A part of a call. The first part names the function; later parts contain pieces of its arguments."""

    index: int
    function: FunctionDelta
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class Token(Exact):
    token: str
    logprob: float
    bytes: list[int]


class ChosenToken(Token):
    top_logprobs: list[Token]


class ChatLogprobs(Exact):
    content: list[ChosenToken]
    refusal: None


class ChatMessage(Exact):
    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class ChatChoice(Exact):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: Reason


class ChatCompletion(WithOrigin, kw_only=True):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class ChatDelta(Exact):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallDelta] | UnsetType = UNSET


class ChatChunkChoice(Exact):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: Reason | None


class ChatChunk(WithOrigin, kw_only=True):
    """One event of a stream. The stream ends with `[DONE]` after the last one."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | UnsetType | None = UNSET


class TextLogprobs(Exact):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(Exact):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: TextReason


class TextCompletion(WithOrigin, kw_only=True):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage


class TextChunkChoice(Exact):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: TextReason | None


class TextChunk(WithOrigin, kw_only=True):
    """One event of a stream. The stream ends with `[DONE]` after the last one."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChunkChoice]
    usage: Usage | UnsetType | None = UNSET


class VectorUsage(Exact):
    prompt_tokens: int
    total_tokens: int


class Vector(Exact):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Vectors(Exact):
    object: Literal["list"]
    model: str
    data: list[Vector]
    usage: VectorUsage


# Ollama's API


class OllamaError(Exact):
    """An error in Ollama's format."""

    error: str


class Version(Exact):
    version: str


class ModelDetails(Exact):
    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(Exact):
    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: ModelDetails


class Tags(Exact):
    models: list[OllamaModel]


class OllamaLoaded(Exact):
    name: str
    model: str
    size: int
    digest: str
    details: ModelDetails
    context_length: int


class LoadedModels(Exact):
    models: list[OllamaLoaded]


class ModelDescription(Exact):
    modified_at: str
    license: str
    modelfile: str
    parameters: str
    template: str
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[Capability]


class OllamaFunction(Exact):
    name: str
    arguments: dict[str, Any]


class OllamaCall(Exact):
    function: OllamaFunction


class OllamaMessage(Exact):
    role: Literal["assistant"]
    content: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaCall] | UnsetType = UNSET


class _AnswerLine(WithOrigin, kw_only=True):
    """A line with the statistics that end a stream and are part of a complete answer."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET


class OllamaChat(_AnswerLine, kw_only=True):
    message: OllamaMessage


class OllamaText(_AnswerLine, kw_only=True):
    response: str
    thinking: str | UnsetType = UNSET


class OllamaVectors(Exact):
    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaVector(Exact):
    embedding: list[float]


# Anthropic's Messages API


class MessageCause(Exact):
    type: str
    message: str


class MessageError(Exact, tag_field="type", tag="error"):
    """An error in Anthropic's format."""

    error: MessageCause
    request_id: str


class TokenCount(Exact):
    input_tokens: int


class TextBlock(Exact, tag_field="type", tag="text"):
    text: str


class ThinkingBlock(Exact, tag_field="type", tag="thinking"):
    thinking: str
    signature: str


class ToolUseBlock(Exact, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


ContentBlock = TextBlock | ThinkingBlock | ToolUseBlock


class MessageUsage(Exact):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class AnthropicMessage(WithOrigin, kw_only=True):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[ContentBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Exact, tag_field="type", tag="message_start"):
    message: AnthropicMessage


class ContentBlockStart(Exact, tag_field="type", tag="content_block_start"):
    index: int
    content_block: ContentBlock


class TextDelta(Exact, tag_field="type", tag="text_delta"):
    text: str


class ThinkingDelta(Exact, tag_field="type", tag="thinking_delta"):
    thinking: str


class SignatureDelta(Exact, tag_field="type", tag="signature_delta"):
    signature: str


class InputJsonDelta(Exact, tag_field="type", tag="input_json_delta"):
    partial_json: str


BlockDelta = TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockDelta(Exact, tag_field="type", tag="content_block_delta"):
    index: int
    delta: BlockDelta


class ContentBlockStop(Exact, tag_field="type", tag="content_block_stop"):
    index: int


class MessageEnd(Exact):
    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Exact, tag_field="type", tag="message_delta"):
    delta: MessageEnd
    usage: MessageUsage


class MessageStop(Exact, tag_field="type", tag="message_stop"):
    pass


class Ping(Exact, tag_field="type", tag="ping"):
    """An event that keeps a silent stream alive."""


MessageEvent = (
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | MessageError
)


# llama.cpp's server: routes that OpenAI's API does not have


class Healthy(Exact):
    status: Literal["ok"]


class LoadingCause(Exact):
    code: Literal[503]
    message: str
    type: Literal["unavailable_error"]


class Loading(Exact):
    """The server's state while it is loading its first model."""

    error: LoadingCause


class UsualParams(Exact):
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    repeat_last_n: int
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int
    n_predict: int


class UsualSettings(Exact):
    params: UsualParams
    n_ctx: int


class Modalities(Exact):
    vision: bool
    video: bool
    audio: bool


class Props(Exact):
    default_generation_settings: UsualSettings
    total_slots: int
    model_alias: str
    model_path: str
    model_ftype: str
    modalities: Modalities
    endpoint_slots: bool
    endpoint_props: bool
    endpoint_metrics: bool
    chat_template: str
    bos_token: str
    eos_token: str
    build_info: str
    is_sleeping: bool


class RankedText(Exact):
    text: str


class RankedDocument(Exact):
    index: int
    relevance_score: float
    document: RankedText | UnsetType = UNSET


class RankUsage(Exact):
    prompt_tokens: int
    total_tokens: int


class RankedDocuments(Exact):
    """The answer to a request with `documents`."""

    model: str
    object: Literal["list"]
    usage: RankUsage
    results: list[RankedDocument]


class RankedTexts(Exact):
    """One entry of the answer to a request with `texts`."""

    index: int
    score: float
    text: str | UnsetType = UNSET


Ranked = RankedDocuments | list[RankedTexts]  # depends on the form of the request
