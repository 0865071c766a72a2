"""The list is ranked by what fits this household, and holds still."""

from __future__ import annotations

import pytest

from app.core.planner.verdict import Verdict, VerdictWord
from app.gui.models.model_item import offer_item
from app.gui.models.models_page import ModelsPage
from app.gui.models.ranking import Fit, fit_of, rank
from app.gui.models.verdicts import Judgment
from tests.gui.models.offers import file, offer

FITS, TIGHT = Judgment(Verdict(VerdictWord.FITS)), Judgment(Verdict(VerdictWord.TIGHT))
TOO_BIG = Judgment(Verdict(VerdictWord.TOO_BIG, short_bytes=1 << 30))


@pytest.mark.parametrize(
    ("judgment", "fit"),
    [
        (None, Fit.UNKNOWN),
        (FITS, Fit.WELL),
        (Judgment(FITS.verdict, tok_s=2.0), Fit.SLOW),
        (TIGHT, Fit.TIGHT),
        (Judgment(Verdict(VerdictWord.SMALLER, context=512)), Fit.LIMITED),
        (Judgment(TOO_BIG.verdict, quantization="Q2_K"), Fit.LIMITED),
        (TOO_BIG, Fit.TOO_BIG),
    ],
)
def test_how_well_a_model_fits(judgment: Judgment | None, fit: Fit) -> None:
    assert fit_of(offer_item(offer("m", file("Q4_K_M", 1.0))), judgment) is fit


def test_a_large_model_is_slow_as_long_as_nothing_was_measured_unless_few_weights_compute_each_word() -> None:
    large = offer("m", file("Q4_K_M", 17.0), parameters=30_000_000_000)
    assert fit_of(offer_item(large), FITS) is Fit.SLOW
    sparse = offer("m", file("Q4_K_M", 17.0), parameters=30_000_000_000, active_parameters=3_000_000_000)
    assert fit_of(offer_item(sparse), FITS) is Fit.WELL


def test_the_largest_that_fits_comes_first_and_the_largest_that_does_not_last() -> None:
    small, large = (offer_item(offer(f"m-{n}", file("Q4_K_M", 1.0), parameters=n * 10**9)) for n in (4, 8))
    ranked = sorted(
        [(small, TOO_BIG), (large, TOO_BIG), (small, FITS), (large, FITS), (large, TIGHT)], key=lambda pair: rank(*pair)
    )
    assert ranked == [(large, FITS), (small, FITS), (large, TIGHT), (small, TOO_BIG), (large, TOO_BIG)]


def test_another_speed_moves_no_row() -> None:
    item = offer_item(offer("m", file("Q4_K_M", 1.0)))
    assert rank(item, Judgment(FITS.verdict, tok_s=9.0)) == rank(item, Judgment(FITS.verdict, tok_s=90.0))


def test_the_catalog_is_divided_by_fit_and_the_chosen_row_stays_where_it_is(page: ModelsPage) -> None:
    offers = [offer_item(offer(f"m-{n}", file("Q4_K_M", 0.1), name=f"M {n}")) for n in range(40)]
    page.library.offers = offers
    for item in offers[:20]:
        page.verdict_loader._known[item.key] = FITS
    for item in offers[20:]:
        page.verdict_loader._known[item.key] = TOO_BIG
    page.list.refresh()
    rows = page.list.rows
    headings = [rows.row(rows.index(n)).heading for n in range(rows.rowCount()) if rows.row(rows.index(n)).heading]
    assert headings[-2:] == ["Catalog: fits your household", "Catalog: too big for your household"]
    assert page.list.select("offer:m-30")
    place = page.list.rows.place("offer:m-30")
    before = page.list.view.visualRect(place).top()
    page.verdict_loader._known["offer:m-9"] = TOO_BIG  # a row above it leaves, as when memory gets scarce
    page.list.refresh()
    after = page.list.rows.place("offer:m-30")
    assert after != place
    assert page.list.view.visualRect(after).top() == before
    assert page.list.chosen_key == "offer:m-30"
