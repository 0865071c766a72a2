"""Answers of the routes that llama.cpp's server has and OpenAI's API has not. No I/O."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from app.gateway.openapi.schema_parts import Exact


class Healthy(Exact):
    status: Literal["ok"]


class LoadingCause(Exact):
    code: Literal[503]
    message: str
    type: Literal["unavailable_error"]


class Loading(Exact):
    """While the first model is loaded."""

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
    """Asked with `documents`."""

    model: str
    object: Literal["list"]
    usage: RankUsage
    results: list[RankedDocument]


class RankedTexts(Exact):
    """One of the list that comes where it was asked with `texts`."""

    index: int
    score: float
    text: str | UnsetType = UNSET


Ranked = RankedDocuments | list[RankedTexts]  # by how it was asked
