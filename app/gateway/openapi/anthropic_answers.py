"""Answers of Anthropic's Messages API, and its errors. No I/O."""

from __future__ import annotations

from typing import Any, Literal

from app.gateway.openapi.schema_parts import Exact, Told

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class MessageCause(Exact):
    type: str
    message: str


class MessageError(Exact, tag_field="type", tag="error"):
    """Of Anthropic's kind."""

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


class MessageUsage(Exact):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class AnthropicMessage(Told, kw_only=True):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Exact, tag_field="type", tag="message_start"):
    message: AnthropicMessage


class ContentBlockStart(Exact, tag_field="type", tag="content_block_start"):
    index: int
    content_block: TextBlock | ThinkingBlock | ToolUseBlock


class TextDelta(Exact, tag_field="type", tag="text_delta"):
    text: str


class ThinkingDelta(Exact, tag_field="type", tag="thinking_delta"):
    thinking: str


class SignatureDelta(Exact, tag_field="type", tag="signature_delta"):
    signature: str


class InputJsonDelta(Exact, tag_field="type", tag="input_json_delta"):
    partial_json: str


class ContentBlockDelta(Exact, tag_field="type", tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


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
    """Nothing else has come for a while."""


MessageEvent = (
    MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop | Ping
    | MessageError
)  # fmt: skip
