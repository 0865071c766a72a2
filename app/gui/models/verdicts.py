"""Judgments of whether models fit, from plans, refusals and estimates, and their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec
from PySide6.QtCore import QCoreApplication

from app.api import models as node_models
from app.api.models import CatalogueModel, FoundFile, HubFile, ShelfModel
from app.api.plans import Plan
from app.api.requests import Sketch
from app.core.errors import AppError, DoesNotFit, Reason
from app.core.planner.verdict import Parts, Verdict, VerdictWord, verdict_of
from app.gui.look import formats
from app.gui.look.sentences import said
from app.gui.models.model_item import Item

MOST_CONTEXT = 1 << 24
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and what the list shows beside it."""

    verdict: Verdict
    estimate: bool = False  # made from a file's size, not from the file
    tok_s: float | None = None
    quantisation: str = ""  # a smaller one that fits, where this one does not

    @property
    def fits(self) -> bool:
        return self.verdict.word in (VerdictWord.FITS, VerdictWord.TIGHT)

    @property
    def icon(self) -> str:
        if self.quantisation:
            return "info"
        icons = {VerdictWord.FITS: "check", VerdictWord.TIGHT: "warning", VerdictWord.SMALLER: "info"}
        return icons.get(self.verdict.word, "error")

    @property
    def color(self) -> str:
        if self.quantisation:
            return "warning"
        colors = {VerdictWord.FITS: "good", VerdictWord.TOO_BIG: "error"}
        return colors.get(self.verdict.word, "warning")


def of_plan(plan: Plan) -> Judgement:
    """Return the judgment of a plan: the model fits as it is placed."""
    verdict = verdict_of((machine.needs_bytes, machine.lends_bytes) for machine in plan.machines)
    return Judgement(verdict, tok_s=plan.forecast.decode_tok_s if plan.forecast else None)


def of_error(error: AppError) -> Judgement | None:
    """Return the judgment of a refusal for lack of memory; None for any other error."""
    if not isinstance(error, DoesNotFit):
        return None
    need = int(error.reason.number("need_bytes"))
    have = int(error.reason.number("lent_bytes") or error.reason.number("free_bytes"))
    context = int(error.reason.number("fits_context"))
    word = VerdictWord.SMALLER if context else VerdictWord.TOO_BIG
    parts = None
    if {"weight_bytes", "kv_bytes", "work_bytes"} <= set(error.reason.facts):
        weights, kv = int(error.reason.number("weight_bytes")), int(error.reason.number("kv_bytes"))
        parts = Parts(weights, kv, int(error.reason.number("work_bytes")), have)
    # the amount that the sentence names, where it names one
    short = int(error.reason.number("short_bytes")) or max(0, need - have)
    return Judgement(Verdict(word, short_bytes=short, context=context, parts=parts))


def of_estimate(estimate: node_models.Verdict, quantisation: str = "") -> Judgement:
    """Return the judgment of a sketch, by its plan where the node placed it."""
    if estimate.plan is not None:
        return replace(of_plan(estimate.plan), estimate=True)
    parts = estimate.parts
    verdict = Verdict(
        VerdictWord(estimate.word),
        estimate.spare_bytes,
        estimate.short_bytes,
        estimate.context,
        Parts(parts.weight_bytes, parts.kv_bytes, parts.work_bytes, parts.lends_bytes) if parts else None,
    )
    return Judgement(verdict, estimate=True, quantisation=quantisation)


def short(judgement: Judgement) -> str:
    """Return the words for the list."""
    verdict = judgement.verdict
    match verdict.word:
        case VerdictWord.FITS:
            return translate("Models", "Fits")
        case VerdictWord.TIGHT:
            return translate("Models", "Tight")
        case VerdictWord.SMALLER:
            count = formats.number(verdict.context)
            return translate("Models", "Fits with {count} tokens").format(count=count)
        case VerdictWord.TOO_BIG if judgement.quantisation:
            return translate("Models", "{quantisation} fits").format(quantisation=judgement.quantisation)
        case VerdictWord.TOO_BIG if verdict.short_bytes:
            size = formats.size(verdict.short_bytes)
            return translate("Models", "Too large by {size}").format(size=size)
        case _:
            return translate("Models", "Too large")


def title(judgement: Judgement) -> str:
    """Return the title for the details."""
    verdict = judgement.verdict
    if verdict.word is VerdictWord.SMALLER:
        return translate("Models", "Fits with a smaller context")
    if verdict.word is VerdictWord.TOO_BIG and verdict.short_bytes:
        size = formats.size(verdict.short_bytes)
        return translate("Models", "Too large by {size}").format(size=size)
    return short(judgement)


def beside(judgement: Judgement) -> str:
    """Return the number that goes with the title."""
    verdict = judgement.verdict
    match verdict.word:
        case VerdictWord.FITS:
            size = formats.size(verdict.spare_bytes)
            text = translate("Models", "{size} to spare").format(size=size)
        case VerdictWord.TIGHT:
            size = formats.size(verdict.spare_bytes)
            text = translate("Models", "only {size} to spare").format(size=size)
        case VerdictWord.SMALLER:
            count = formats.number(verdict.context)
            text = translate("Models", "{count} tokens").format(count=count)
        case _:
            text = ""
    if judgement.estimate:
        estimate = translate("Models", "estimate")
        text = f"{text} · {estimate}" if text else estimate
    return text


def sentence(error: AppError) -> str:
    """Return the part of a refusal that the title does not say."""
    helps = error.reason.facts.get("what_helps")
    return said(helps) if isinstance(error, DoesNotFit) and isinstance(helps, Reason) else said(error)


def sketch(item: Item, file: HubFile | None, key: str) -> Sketch | None:
    """Return what the node needs to estimate a model that is not here; None when not even its size is known."""
    facts = item.facts
    size = facts.size_bytes if isinstance(facts, FoundFile) else file.size_bytes if file is not None else None
    if not size or isinstance(facts, ShelfModel):
        return None
    quantisation = file.quantisation if file is not None else item.quantisation
    made = Sketch(
        key=key,
        architecture=(facts.architecture or "")[:100],
        file_bytes=size,
        context_length=min(facts.context_length or MOST_CONTEXT, MOST_CONTEXT),
        splits=item.splits,
        quantisation=quantisation[:100],
    )
    match facts:
        case FoundFile():
            return msgspec.structs.replace(made, n_layers=facts.n_layers)
        case CatalogueModel():
            return msgspec.structs.replace(
                made,
                n_layers=facts.n_layers,
                kv_bytes_per_token=facts.kv_bytes_per_token,
                parameters=facts.parameters,
                active_parameters=facts.active_parameters,
            )
        case _:
            return msgspec.structs.replace(made, parameters=facts.parameters)


def smaller_files(offer: Item, limit_bytes: int) -> list[HubFile]:
    """Return the usable files that are smaller, the largest first."""
    smaller = [file for file in offer.files if file.usable and 0 < (file.size_bytes or 0) < limit_bytes]
    return sorted(smaller, key=lambda file: -(file.size_bytes or 0))


def with_smaller(estimate: node_models.Verdict, smaller: Iterable[tuple[HubFile, node_models.Verdict]]) -> Judgement:
    """Return the judgment; for a model that is too big, with the largest of its smaller files that fits."""
    if estimate.word != VerdictWord.TOO_BIG:
        return of_estimate(estimate)
    return of_estimate(estimate, largest_fitting(smaller))


def largest_fitting(smaller: Iterable[tuple[HubFile, node_models.Verdict]]) -> str:
    """Return the quantization of the first of these files that fits; "" for none."""
    return next((file.quantisation for file, estimate in smaller if of_estimate(estimate).fits), "")
