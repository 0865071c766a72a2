"""Answers of Ollama's API, and its errors. No I/O."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from app.gateway.openapi.schema_parts import Exact, Told


class OllamaError(Exact):
    """Of Ollama's kind."""

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


class Shown(Exact):
    modified_at: str
    license: str
    modelfile: str
    parameters: str
    template: str
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[Literal["completion", "tools", "thinking", "embedding"]]


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


class _Line(Told, kw_only=True):
    """The figures stand in the last line of a stream, and in an answer that comes as a whole."""

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


class OllamaChat(_Line, kw_only=True):
    message: OllamaMessage


class OllamaText(_Line, kw_only=True):
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
