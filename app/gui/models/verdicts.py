"""Verdicts on whether models fit in memory, and their wording. They are derived from plans, refusals and estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.api.models import CatalogModel, FoundFile, HubFile, ShelfModel, Verdicts
from app.api.models import Verdict as Estimate
from app.api.plans import Plan
from app.api.requests import JudgeModels, Sketch
from app.core.errors import AppError, DoesNotFit, Reason
from app.core.planner.verdict import MemoryNeeds, Verdict, VerdictWord, verdict_of
from app.gui.api.node_client import Calls, NodeClient
from app.gui.look import formats
from app.gui.look.sentences import said
from app.gui.models.library import Library
from app.gui.models.model_item import ItemKind, ModelItem

PLANS, ESTIMATES, SIBLINGS = "plans", "estimates", "siblings"
HANDY_BYTES = 6 << 30  # larger models are slow without a graphics card
MAX_SKETCHES = 400  # maximum number per request


MAX_CONTEXT = 1 << 24
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Judgment:
    """A verdict, with the other facts shown beside it in the list."""

    verdict: Verdict
    estimate: bool = False  # based on the file's size instead of its contents
    tok_s: float | None = None
    spread: float = 1.0  # the factor by which an answer may be faster or slower than `tok_s`
    quantization: str = ""  # a smaller quantization that fits, if this one does not

    @property
    def fits(self) -> bool:
        return self.verdict.word in (VerdictWord.FITS, VerdictWord.TIGHT)

    @property
    def icon(self) -> str:
        if self.quantization:
            return "info"
        icons = {VerdictWord.FITS: "check", VerdictWord.TIGHT: "warning", VerdictWord.SMALLER: "info"}
        return icons.get(self.verdict.word, "error")

    @property
    def color(self) -> str:
        if self.quantization:
            return "warning"
        colors = {VerdictWord.FITS: "good", VerdictWord.TOO_BIG: "error"}
        return colors.get(self.verdict.word, "warning")


def of_plan(plan: Plan) -> Judgment:
    """Return the judgment for a plan. A plan exists only if the model fits."""
    verdict = verdict_of((machine.needs_bytes, machine.lends_bytes) for machine in plan.machines)
    forecast = plan.as_shown().forecast
    if forecast is None:
        return Judgment(verdict)
    return Judgment(verdict, tok_s=forecast.decode_tok_s, spread=forecast.spread)


def of_error(error: AppError) -> Judgment | None:
    """Return the judgment for a refusal due to lack of memory, or None for any other error."""
    if not isinstance(error, DoesNotFit):
        return None
    need = int(error.reason.number("need_bytes"))
    have = int(error.reason.number("lent_bytes") or error.reason.number("free_bytes"))
    context = int(error.reason.number("fits_context"))
    word = VerdictWord.SMALLER if context else VerdictWord.TOO_BIG
    parts = None
    if {"weight_bytes", "kv_bytes", "work_bytes"} <= set(error.reason.facts):
        weights, kv = int(error.reason.number("weight_bytes")), int(error.reason.number("kv_bytes"))
        parts = MemoryNeeds(weights, kv, int(error.reason.number("work_bytes")), have)
    # prefer the shortage stated in the error
    short = int(error.reason.number("short_bytes")) or max(0, need - have)
    return Judgment(Verdict(word, short_bytes=short, context=context, parts=parts))


def of_estimate(estimate: Estimate, quantization: str = "") -> Judgment:
    """Return the judgment for an estimate, based on its plan if it has one."""
    if estimate.plan is not None:
        return replace(of_plan(estimate.plan), estimate=True)
    parts = estimate.parts
    verdict = Verdict(
        VerdictWord(estimate.word),
        estimate.spare_bytes,
        estimate.short_bytes,
        estimate.context,
        MemoryNeeds(parts.weight_bytes, parts.kv_bytes, parts.work_bytes, parts.lends_bytes) if parts else None,
    )
    tok_s, spread = estimate.tok_s, estimate.spread
    return Judgment(verdict, estimate=True, tok_s=tok_s, spread=spread, quantization=quantization)


def short(judgment: Judgment) -> str:
    """Return the text of a verdict for the list."""
    verdict = judgment.verdict
    match verdict.word:
        case VerdictWord.FITS:
            return translate("Models", "Fits")
        case VerdictWord.TIGHT:
            return translate("Models", "Tight")
        case VerdictWord.SMALLER:
            count = formats.number(verdict.context)
            return translate("Models", "Fits with a {count}-token context").format(count=count)
        case VerdictWord.TOO_BIG if judgment.quantization:
            return translate("Models", "{quantization} fits").format(quantization=judgment.quantization)
        case VerdictWord.TOO_BIG if verdict.short_bytes:
            size = formats.size(verdict.short_bytes)
            return translate("Models", "Too big by {size}").format(size=size)
        case _:
            return translate("Models", "Too big")


def title(judgment: Judgment) -> str:
    """Return the text of a verdict for the title of the details."""
    verdict = judgment.verdict
    if verdict.word is VerdictWord.SMALLER:
        return translate("Models", "Fits with a smaller context")
    if verdict.word is VerdictWord.TOO_BIG and verdict.short_bytes:
        size = formats.size(verdict.short_bytes)
        return translate("Models", "Too big by {size}").format(size=size)
    return short(judgment)


def beside(judgment: Judgment) -> str:
    """Return the figure shown beside the title."""
    verdict = judgment.verdict
    match verdict.word:
        case VerdictWord.FITS:
            size = formats.size(verdict.spare_bytes)
            text = translate("Models", "{size} to spare")
            if judgment.estimate:
                text = translate("Models", "about {size} to spare")
            text = text.format(size=size)
        case VerdictWord.TIGHT:
            size = formats.size(verdict.spare_bytes)
            text = translate("Models", "only {size} to spare").format(size=size)
        case VerdictWord.SMALLER:
            count = formats.number(verdict.context)
            text = translate("Models", "{count} tokens").format(count=count)
        case _:
            text = ""
    return text


def speed(judgment: Judgment) -> str:
    """Return the forecast speed of a model that fits as a range, or ""."""
    return formats.speed_range(judgment.tok_s, judgment.spread) if judgment.tok_s and judgment.fits else ""


def sentence(error: AppError) -> str:
    """Return the part of a refusal that the title does not already cover."""
    helps = error.reason.facts.get("what_helps")
    return said(helps) if isinstance(error, DoesNotFit) and isinstance(helps, Reason) else said(error)


def sketch(item: ModelItem, file: HubFile | None, key: str) -> Sketch | None:
    """Return the data for the node's estimate of a model outside the library, or None if its size is unknown."""
    facts = item.facts
    size = facts.size_bytes if isinstance(facts, FoundFile) else file.size_bytes if file is not None else None
    if not size or isinstance(facts, ShelfModel):
        return None
    quantization = file.quantization if file is not None else item.quantization
    made = Sketch(
        key=key,
        architecture=(facts.architecture or "")[:100],
        file_bytes=size,
        context_length=min(facts.context_length or MAX_CONTEXT, MAX_CONTEXT),
        splits=item.splits,
        quantization=quantization[:100],
    )
    match facts:
        case FoundFile():
            return msgspec.structs.replace(made, n_layers=facts.n_layers)
        case CatalogModel():
            return msgspec.structs.replace(
                made,
                n_layers=facts.n_layers,
                kv_bytes_per_token=facts.kv_bytes_per_token,
                parameters=facts.parameters,
                active_parameters=facts.active_parameters,
            )
        case _:
            return msgspec.structs.replace(made, parameters=facts.parameters)


def smaller_files(offer: ModelItem, limit_bytes: int) -> list[HubFile]:
    """Return the usable files smaller than this limit, largest first."""
    smaller = [file for file in offer.files if file.usable and 0 < (file.size_bytes or 0) < limit_bytes]
    return sorted(smaller, key=lambda file: -(file.size_bytes or 0))


def with_smaller(estimate: Estimate, smaller: Iterable[tuple[HubFile, Estimate]]) -> Judgment:
    """Return the judgment for an estimate.

    If the model is too big, the judgment names its largest smaller file that fits.
    """
    if estimate.word != VerdictWord.TOO_BIG:
        return of_estimate(estimate)
    return of_estimate(estimate, largest_fitting(smaller))


def largest_fitting(smaller: Iterable[tuple[HubFile, Estimate]]) -> str:
    """Return the quantization of the first file that fits, or an empty string if none does."""
    return next((file.quantization for file, estimate in smaller if of_estimate(estimate).fits), "")


class VerdictLoader(QObject):
    """A loader of verdicts for all listed models. It uses plans for local models and estimates for all others.

    Plans are requested one at a time, so that each one reflects the current state of the household.
    """

    changed = Signal()

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self._known: dict[str, Judgment] = {}
        self._waiting: list[ModelItem] = []
        self._too_big: list[tuple[ModelItem, ModelItem]] = []  # a local model, and the offer with its smaller files
        self._items: dict[str, ModelItem] = {}

    def of(self, item: ModelItem) -> Judgment | None:
        """Return the judgment of a model, or None if it is not known yet."""
        return self._known.get(item.key)

    def put(self, item: ModelItem, judgment: Judgment) -> None:
        """Store a judgment made by the details view. If the verdict is unchanged, its smaller quantization is kept."""
        was = self._known.get(item.key)
        same = was is not None and was.verdict.word is judgment.verdict.word
        kept = was.quantization if was is not None and same else ""
        self._known[item.key] = replace(judgment, quantization=judgment.quantization or kept)
        self.changed.emit()

    def ask(self, items: list[ModelItem]) -> None:
        """Request new judgments for these models. The old ones remain valid until they are replaced."""
        self._calls.end_all()
        if self._client.endpoint is None:
            return
        self._items = {item.key: item for item in items}
        self._waiting = [item for item in items if item.is_here]
        self._too_big = []
        self._next_plan()
        files = [(item, item.file()) for item in items if not item.is_here]
        sketches = [made for item, file in files if (made := sketch(item, file, item.key))]
        self._estimate(sketches, self._estimated, forecast=True)

    def end(self) -> None:
        self._calls.end_all()

    def _next_plan(self) -> None:
        if not self._waiting:
            self._calls.done(PLANS)
            self._estimate(self._siblings(), self._siblings_estimated, SIBLINGS)
            return
        item = self._waiting.pop(0)
        body = {"model": item.name, "measure": False}
        done, failed = partial(self._planned, item), partial(self._refused, item)
        self._calls.keep(PLANS, self._client.call("POST", "/plan", body, done, failed, answer=Plan))

    def _planned(self, item: ModelItem, plan: Plan) -> None:
        self.put(item, of_plan(plan))
        self._next_plan()

    def _refused(self, item: ModelItem, error: AppError) -> None:
        judgment = of_error(error)
        if judgment is not None:
            self.put(item, judgment)
            offer = offer_of(item, self._items.values())
            if judgment.verdict.word is VerdictWord.TOO_BIG and offer is not None:
                self._too_big.append((item, offer))
        self._next_plan()

    def _siblings(self) -> list[Sketch]:
        """Return sketches of smaller files of the local models that are too big."""
        return [
            made
            for item, offer in self._too_big
            for file in smaller_files(offer, item.file_bytes)
            if (made := sketch(offer, file, f"{item.key}\n{file.file}"))
        ]

    def _siblings_estimated(self, answer: Verdicts) -> None:
        self._calls.done(SIBLINGS)
        for item, offer in self._too_big:
            smaller = _estimated_files(item.key, smaller_files(offer, item.file_bytes), answer.verdicts)
            self._known[item.key] = replace(self._known[item.key], quantization=largest_fitting(smaller))
        self.changed.emit()

    def _estimate(
        self, sketches: list[Sketch], done: Callable[[Verdicts], None], call: str = ESTIMATES, *, forecast: bool = False
    ) -> None:
        if sketches:
            body = msgspec.to_builtins(JudgeModels(sketches=sketches[:MAX_SKETCHES], forecast=forecast))
            self._calls.keep(call, self._client.post("/verdicts", body, done, answer=Verdicts))

    def _estimated(self, answer: Verdicts) -> None:
        """Store the judgments of downloadable models. If a model is too big, request estimates of its smaller files."""
        self._calls.done(ESTIMATES)
        more: list[Sketch] = []
        for key, verdict in answer.verdicts.items():
            item = self._items[key]
            self._known[key] = with_smaller(verdict, [])
            if verdict.word == VerdictWord.TOO_BIG and item.kind is not ItemKind.OTHER_APP:
                files = smaller_files(item, item.file_bytes)
                more += [made for file in files if (made := sketch(item, file, f"{key}\n{file.file}"))]
        self.changed.emit()
        self._estimate(more, partial(self._smaller_estimated, answer.verdicts))

    def _smaller_estimated(self, before: dict[str, Estimate], answer: Verdicts) -> None:
        self._calls.done(ESTIMATES)
        for key, verdict in before.items():
            item = self._items[key]
            smaller = _estimated_files(key, smaller_files(item, item.file_bytes), answer.verdicts)
            self._known[key] = with_smaller(verdict, smaller)
        self.changed.emit()


def _estimated_files(
    key: str, files: Iterable[HubFile], verdicts: dict[str, Estimate]
) -> list[tuple[HubFile, Estimate]]:
    """Return the files for which there is an estimate, paired with their estimates."""
    return [(file, verdicts[name]) for file in files if (name := f"{key}\n{file.file}") in verdicts]


def offer_of(item: ModelItem, items: Iterable[ModelItem]) -> ModelItem | None:
    """Return the catalog entry or search result from which a local model was downloaded, or None."""
    return next((other for other in items if any(file.on_shelf == item.name for file in other.files)), None)


def recommended(library: Library, verdict_loader: VerdictLoader) -> ModelItem | None:
    """Return a capable model that fits now: a local one, the recommended one or, failing both, one from the catalog."""
    return _largest(library.shelf, verdict_loader) or library.recommended() or _largest(library.offers, verdict_loader)


def _largest(items: list[ModelItem], verdict_loader: VerdictLoader) -> ModelItem | None:
    """Return the largest fitting model up to HANDY_BYTES, or the smallest fitting model if all of them are larger."""

    fitting = [
        item
        for item in items
        if not item.is_guide and item.chats and (known := verdict_loader.of(item)) is not None and known.fits
    ]
    handy = [item for item in fitting if item.file_bytes <= HANDY_BYTES]
    if handy:
        return max(handy, key=lambda item: item.file_bytes)
    return min(fitting, key=lambda item: item.file_bytes, default=None)
