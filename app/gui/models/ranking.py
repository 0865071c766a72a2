"""The order of the models in the list. Models that fit this household best come first."""

from __future__ import annotations

from enum import IntEnum

from app.api.models import CatalogModel, HubModel, ShelfModel
from app.core.planner.verdict import READING_TOK_S, VerdictWord
from app.gui.models.model_item import BYTES_PER_PARAMETER, ModelItem
from app.gui.models.verdicts import HANDY_BYTES, Judgment


class Fit(IntEnum):
    """The grades of how well a model fits, best first."""

    WELL = 0  # with memory to spare, and faster than people read
    SLOW = 1  # with memory to spare
    TIGHT = 2
    LIMITED = 3  # with a shorter context or in a smaller version
    UNKNOWN = 4
    TOO_BIG = 5


def fit_of(item: ModelItem, judgment: Judgment | None) -> Fit:
    """Return how well a model fits. Without a forecast, the model's size determines whether it is fast enough."""
    if judgment is None:
        return Fit.UNKNOWN
    match judgment.verdict.word:
        case VerdictWord.FITS:
            speed = judgment.tok_s
            is_brisk = speed >= READING_TOK_S if speed is not None else _read_bytes(item) <= HANDY_BYTES
            return Fit.WELL if is_brisk else Fit.SLOW
        case VerdictWord.TIGHT:
            return Fit.TIGHT
        case VerdictWord.SMALLER:
            return Fit.LIMITED
    return Fit.LIMITED if judgment.quantization else Fit.TOO_BIG


def rank(item: ModelItem, judgment: Judgment | None) -> tuple[int, float, str]:
    """Return the sort key of a model.

    Among models that fit equally well, the largest comes first, because it is the most capable. Among models that are
    too big, the smallest comes first, because it needs the least additional memory. The key does not depend on the
    exact speed or memory, which change constantly, so the order is stable.
    """
    fit, size = fit_of(item, judgment), _size(item)
    return fit, size if fit is Fit.TOO_BIG else -size, item.name.casefold()


def _size(item: ModelItem) -> float:
    facts = item.facts
    if isinstance(facts, CatalogModel | HubModel) and facts.parameters:
        return facts.parameters * BYTES_PER_PARAMETER
    if isinstance(facts, ShelfModel) and facts.n_parameters:
        return facts.n_parameters * BYTES_PER_PARAMETER
    return float(item.file_bytes)


def _read_bytes(item: ModelItem) -> float:
    """Return the number of bytes of weights that must be read for each token, which determines the speed."""
    facts = item.facts
    if isinstance(facts, CatalogModel) and facts.active_parameters and facts.parameters:
        return item.file_bytes * facts.active_parameters / facts.parameters
    return item.file_bytes
