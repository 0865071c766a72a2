"""What is known of whether a model fits, and its words: from a plan, from a refusal, from an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QCoreApplication

from app.core.errors import AppError, DoesNotFit
from app.core.planner.verdict import Parts, Verdict, VerdictWord, verdict_of
from app.gui.look import formats
from app.gui.look.sentences import here, said
from app.gui.models.model_item import Item, Kind

Json = dict[str, Any]
MOST_CONTEXT = 1 << 24
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with what the list shows beside it."""

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
    def colour(self) -> str:
        if self.quantisation:
            return "warning"
        colours = {VerdictWord.FITS: "good", VerdictWord.TOO_BIG: "error"}
        return colours.get(self.verdict.word, "warning")


def of_plan(plan: Json) -> Judgement:
    """The model fits as this plan places it."""
    machines = [(one["needs_bytes"], one["lends_bytes"]) for one in plan["machines"]]
    forecast = plan.get("forecast") or {}
    return Judgement(verdict_of(machines), tok_s=forecast.get("decode_tok_s"))


def of_error(error: AppError) -> Judgement | None:
    """A refusal for want of memory; None for any other."""
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


def of_estimate(found: Json, quantisation: str = "") -> Judgement:
    """What the node said of a sketch; of one that it placed, its plan."""
    if found.get("plan"):
        return replace(of_plan(found["plan"]), estimate=True)
    parts = found.get("parts")
    verdict = Verdict(
        VerdictWord(found["word"]),
        found["spare_bytes"],
        found["short_bytes"],
        found["context"],
        Parts(**parts) if parts else None,
    )
    return Judgement(verdict, estimate=True, quantisation=quantisation)


def short(judgement: Judgement) -> str:
    """For the list."""
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
            return translate("Models", "Too big by {size}").format(size=size)
        case _:
            return translate("Models", "Too big")


def title(judgement: Judgement) -> str:
    """For the details."""
    verdict = judgement.verdict
    if verdict.word is VerdictWord.SMALLER:
        return translate("Models", "Fits with a smaller context")
    if verdict.word is VerdictWord.TOO_BIG and verdict.short_bytes:
        size = formats.size(verdict.short_bytes)
        return translate("Models", "Too big by {size}").format(size=size)
    return short(judgement)


def beside(judgement: Judgement) -> str:
    """The number that goes with the title."""
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
    """What a refusal says that the title does not."""
    helps = here(str(error.reason.facts.get("what_helps") or ""))
    return helps if isinstance(error, DoesNotFit) and helps else said(error)


def sketch(item: Item, file: Json | None, key: str) -> Json | None:
    """None when not even its size is known."""
    facts = item.facts
    size = facts.get("size_bytes") if item.kind is Kind.OTHER_APP else (file or {}).get("size_bytes")
    if not size:
        return None
    context = int(facts.get("context_length") or MOST_CONTEXT)
    return {
        "key": key,
        "architecture": str(facts.get("architecture") or "")[:100],
        "file_bytes": int(size),
        "n_layers": facts.get("n_layers"),
        "kv_bytes_per_token": facts.get("kv_bytes_per_token"),
        "context_length": min(context, MOST_CONTEXT),
        "splits": facts.get("splits") is not False,
        "quantisation": str((file or facts).get("quantisation") or "")[:100],
        "parameters": facts.get("parameters"),
        "active_parameters": facts.get("active_parameters"),
    }


def smaller_files(item: Item, file: Json) -> list[Json]:
    """Usable files that take less, the largest first."""
    limit = file.get("size_bytes") or file.get("file_bytes") or 0
    fewer = [one for one in item.files if one.get("usable") and 0 < (one.get("size_bytes") or 0) < limit]
    return sorted(fewer, key=lambda one: -int(one["size_bytes"]))


def with_smaller(found: Json, smaller: list[tuple[Json, Json]]) -> Judgement:
    """A verdict; of a model that is too big with the largest of its smaller files that fits."""
    if found["word"] != "too big":
        return of_estimate(found)
    return of_estimate(found, largest_fitting(smaller))


def largest_fitting(smaller: Iterable[tuple[Json, Json]]) -> str:
    """The quantisation of the first of these files whose verdict is that it fits; "" for none."""
    fitting = (file for file, one in smaller if of_estimate(one).fits)
    return str(next(fitting, {}).get("quantisation") or "")
