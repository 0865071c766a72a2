"""Tests of the page's texts: verdicts, sums, downloads, steps. No window."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api import downloads, models, plans
from app.core.errors import BadInput, DoesNotFit, Reason
from app.core.planner.verdict import Verdict, VerdictWord
from app.decoding import convert
from app.gui.look.sentences import said
from app.gui.look.theme import Scheme, Theme
from app.gui.models import verdicts
from app.gui.models.details.about_view import about_of
from app.gui.models.details.model_actions import Action, ActionContext, ModelAction, actions
from app.gui.models.details.plan_loader import Setup
from app.gui.models.details.setup_form import ContextSlider, steps
from app.gui.models.details.verdict_view import Memory, memories, of_machine, whole_sum
from app.gui.models.model_item import details_line, matches, offer_item, shelf_item
from app.gui.models.model_loading import LoadSteps, step_words
from app.gui.models.transfers import Transfer, TransferRow, of_download
from app.gui.models.verdicts import Judgment, sketch, smaller_files, with_smaller
from tests.gui.models.offers import GIB, download, file, offer

Json = dict[str, Any]
GUIDE = shelf_item(convert({"name": "guide", "builtin": True, "file_bytes": 5 << 20}, models.ShelfModel))
MINE = shelf_item(convert({"name": "mine", "file_bytes": 3 * GIB, "downloaded": True}, models.ShelfModel))
GONE_REASON = Reason("node_away", {})
GONE = {"code": GONE_REASON.code, "facts": GONE_REASON.facts}
IDLE = ActionContext(None, False, None, False, {})


def shown_as(result: Json) -> Transfer:
    return of_download(convert(result, downloads.Download))


@pytest.fixture(autouse=True)
def english() -> None:
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))


def test_a_model_is_described_in_the_windows_language() -> None:
    model = offer(about="Small.", about_in={"de": "Klein."})
    assert about_of(model) == "Small."
    QLocale.setDefault(QLocale(QLocale.Language.German))
    assert about_of(model) == "Klein."


def stage(machine: str, weights: int, kv: int, work: int) -> Json:
    parts = {"weight_bytes": weights, "kv_bytes": kv, "work_bytes": work}
    return {"machine": machine, "id": machine, **parts}


def test_the_sum_of_a_plan() -> None:
    plan = {
        "model": "m",
        "context": 8192,
        "users": 1,
        "stages": [stage("a", GIB, 0, GIB), stage("b", 2 * GIB, GIB, 0), stage("a", GIB, 0, 0)],
        "machines": [
            {"machine": "a", "id": "a", "needs_bytes": 3 * GIB, "lends_bytes": 8 * GIB},
            {"machine": "b", "id": "b", "needs_bytes": 3 * GIB, "lends_bytes": 4 * GIB},
        ],
        "from": {"machines": [{"lends_bytes": 8 * GIB}, {"lends_bytes": 4 * GIB}]},
    }
    a, b = memories(convert(plan, plans.Plan))
    assert a == Memory("a", 2 * GIB, 0, GIB, 8 * GIB)
    assert (b.needs, b.left) == (3 * GIB, GIB)
    assert whole_sum(convert(plan, plans.Plan)) == (
        "Weights 4.0 GiB + KV cache 1.0 GiB for 8,192 tokens + working memory 1.0 GiB = 6.0 GiB. "
        "12.0 GiB is free for models now."
    )
    assert of_machine(b) == "weights 2.0 GiB + KV cache 1.0 GiB + working memory 0 KiB, with 1.0 GiB left"


@pytest.mark.parametrize(
    ("judgment", "short", "title", "beside"),
    [
        (Judgment(Verdict(VerdictWord.FITS, spare_bytes=2 * GIB)), "Fits", "Fits", "2.0 GiB to spare"),
        (
            Judgment(Verdict(VerdictWord.TIGHT, spare_bytes=GIB), estimate=True),
            "Tight",
            "Tight",
            "only 1.0 GiB to spare",
        ),
        (
            Judgment(Verdict(VerdictWord.SMALLER, context=6144)),
            "Fits with a 6,144-token context",
            "Fits with a smaller context",
            "6,144 tokens",
        ),
        (
            Judgment(Verdict(VerdictWord.TOO_BIG, short_bytes=27 * GIB)),
            "Too big by 27.0 GiB",
            "Too big by 27.0 GiB",
            "",
        ),
        (
            Judgment(Verdict(VerdictWord.TOO_BIG, short_bytes=27 * GIB), quantization="Q2_K"),
            "Q2_K fits",
            "Too big by 27.0 GiB",
            "",
        ),
        (Judgment(Verdict(VerdictWord.TOO_BIG)), "Too big", "Too big", ""),
    ],
)
def test_words_of_a_verdict(judgment: Judgment, short: str, title: str, beside: str) -> None:
    said = (verdicts.short(judgment), verdicts.title(judgment), verdicts.beside(judgment))
    assert said == (short, title, beside)


def test_a_refusal_for_memory_is_a_verdict_and_another_is_none() -> None:
    error = DoesNotFit("pool_too_small", model="m", need_bytes=9 * GIB, lent_bytes=8 * GIB,
                       machines=1, what_helps=Reason("helps_context", {"context": 512}), fits_context=512)  # fmt: skip
    judgment = verdicts.of_error(error)
    assert judgment is not None
    assert (judgment.verdict.word, judgment.verdict.context) == (VerdictWord.SMALLER, 512)
    assert verdicts.sentence(error) == "A context of 512 tokens would fit."
    other = BadInput("model_unknown", name="x", there="guide")
    assert verdicts.of_error(other) is None
    assert verdicts.sentence(other) == "There is no model called x. Available: guide."


def test_contexts_grow_with_the_slider() -> None:
    results = steps(131072)
    assert results[:5] == [512, 768, 1024, 1536, 2048]
    assert results[-1] == 131072
    assert all(1.3 < b / a < 1.6 for a, b in pairwise(results))
    assert steps(1000) == [512, 768, 1000]
    assert steps(256) == [256]


def test_a_context_that_cannot_be_changed_says_so(qtbot: QtBot) -> None:
    slider = ContextSlider()
    qtbot.addWidget(slider)
    slider.offer(512)
    assert slider.slider.toolTip() == "512 tokens (model maximum)"
    slider.offer(1024)
    assert slider.slider.toolTip() == "1,024 tokens"


def test_a_line_says_what_it_is_and_is_found_by_it() -> None:
    item = offer_item(offer())
    assert details_line(item) == "Maker · Q4_K_M · 39.7 GiB"
    assert details_line(GUIDE) == "5.0 MiB · small, for learning the app"
    facts = {"quantization": "Q8_0", "file_bytes": 1 << 30}
    assert (
        details_line(shelf_item(convert({"name": "x"} | facts, models.ShelfModel)))
        == "Q8_0 · 1.0 GiB · not in the catalog"
    )
    assert (
        details_line(shelf_item(convert({"name": "x", "in_catalog": True} | facts, models.ShelfModel)))
        == "Q8_0 · 1.0 GiB"
    )
    assert matches(item, "large code")
    assert matches(item, "MAKER")
    assert not matches(item, "large small")


def test_the_next_smaller_file_that_fits() -> None:
    item = offer_item(offer("x", file("Q2_K", 1), file("Q4_K_M", 4, recommended=True),
                            file("Q3_K_M", 3), file("Q3_K_S", 2, usable=False)))  # fmt: skip
    best = item.file()
    assert best is not None
    smaller = smaller_files(item, item.file_bytes)
    assert [hub_file.quantization for hub_file in smaller] == ["Q3_K_M", "Q2_K"]
    made = sketch(item, best, "key")
    assert made is not None
    assert (made.n_layers, made.splits, made.file_bytes) == (80, True, 4 * GIB)
    too_big, fits = models.Verdict("too big", short_bytes=GIB), models.Verdict("tight", spare_bytes=1)
    judgment = with_smaller(too_big, list(zip(smaller, [too_big, fits], strict=True)))
    assert (judgment.quantization, judgment.fits) == ("Q2_K", False)
    assert with_smaller(fits, []).fits


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (download("running"), "10.0 GiB of 40.0 GiB · from huggingface.co · 100 MiB/s · 5 min 07 s left"),
        (download("paused"), "Paused at 10.0 GiB of 40.0 GiB"),
        (download("checking", sha256="a" * 64),
         "Checking the file, 10.0 GiB of 40.0 GiB · 100 MiB/s · 5 min 07 s left"),
        (download("checking", sha256=None),
         "Computing the file's checksum, 10.0 GiB of 40.0 GiB · 100 MiB/s · 5 min 07 s left"),
        (download("waiting"), "Waiting to start"),
        (download("starting"), "Contacting huggingface.co"),
        (download("failed", reason_facts=GONE), said(GONE_REASON)),
        (download("running", total_bytes=None, bytes_per_s=None, seconds_left=None),
         "10.0 GiB · from huggingface.co"),
    ],
)  # fmt: skip
def test_words_of_a_download(item: Json, words: str) -> None:
    assert shown_as(item).words == words


def test_a_download_that_is_held_up_says_why_and_what_stops_it(qtbot: QtBot, qapp: QApplication) -> None:
    theme = Theme(qapp, Scheme.LIGHT, 1.0)
    shown = TransferRow(theme, lambda *_: None, shown_as(download("starting")))
    qtbot.addWidget(shown)
    assert shown._problem.isHidden()
    why = said(GONE_REASON)
    shown.show_transfer(shown_as(download("starting", held_up_facts=GONE)))
    assert shown._problem.text() == f"{why} Poolhouse keeps trying. To stop, click Pause."
    assert not shown._problem.isHidden()
    assert not shown._words.isHidden()
    assert not shown.pause.isHidden()
    shown.show_transfer(shown_as(download("running", held_up=None)))
    assert shown._problem.isHidden()


def test_a_download_that_failed_by_our_mistake_leads_to_the_log(qtbot: QtBot, qapp: QApplication) -> None:
    theme, did = Theme(qapp, Scheme.LIGHT, 1.0), list[str]()
    failed = shown_as(download("failed", code="bug", reason_facts=GONE))
    shown = TransferRow(theme, lambda _, label: did.append(label), failed)
    qtbot.addWidget(shown)
    assert not shown.log.isHidden()
    shown.log.click()
    assert did == ["log"]
    shown.show_transfer(shown_as(download("failed", code="disk_low", reason_facts=GONE)))
    assert shown.log.isHidden()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"step": "sending", "done": GIB, "total": 2 * GIB, "unit": "bytes"},
         "Copying its layers, 1.0 GiB of 2.0 GiB"),
        ({"step": "sending", "done": GIB, "total": 2 * GIB, "unit": "bytes",
          "bytes_per_s": 108 << 20, "seconds_left": 75},
         "Copying its layers, 1.0 GiB of 2.0 GiB, 108 MiB/s, 1 min 15 s left"),
        ({"step": "loading", "done": 0, "total": 1, "unit": "steps"}, "Loading its layers"),
        ({"step": "loading", "done": 1, "total": 1, "unit": "steps"}, "Loaded"),
        ({"step": "else"}, "Working"),
    ],
)  # fmt: skip
def test_words_of_a_step(step: Json, words: str) -> None:
    whole = {"machine": "den", "done": 0, "total": 0, "unit": ""} | step
    assert step_words(convert(whole, plans.Progress)) == words


def test_copies_to_several_machines_are_added_up(qtbot: QtBot) -> None:
    def copy(name: str, done: int, speed: int | None, left: int | None) -> plans.Progress:
        return plans.Progress("sending", name, done << 20, 100 << 20, "bytes", speed and speed << 20, left)

    shown = LoadSteps(lambda: None)
    qtbot.addWidget(shown)
    den = plans.Progress("cutting", "den", 1, 4, "bytes")
    shown.show_steps("big", [den, copy("attic", 50, 10, 5)])
    assert shown.total.isHidden()
    shown.show_steps("big", [den, copy("attic", 50, 10, 5), copy("kitchen", 20, 8, 10)])
    assert shown.total.text() == "All machines: 70 MiB of 200 MiB, 18 MiB/s, 10 s left"
    shown.show_steps("big", [den, copy("attic", 60, None, None), copy("kitchen", 20, None, None)])
    assert shown.total.text() == "All machines: 80 MiB of 200 MiB"


def test_what_can_be_done() -> None:
    def done(item: Any, now: ActionContext, file: str | None = None) -> list[ModelAction]:
        return [action.do for action in actions(Setup(item, file, 4096), now)]

    too_big = Judgment(Verdict(VerdictWord.TOO_BIG, short_bytes=1))
    loaded = plans.LoadedModel(model="mine", state="ready", context=4096, users=1)
    assert done(GUIDE, IDLE) == [ModelAction.LOAD]
    assert done(MINE, IDLE) == [ModelAction.LOAD, ModelAction.DELETE]
    assert done(MINE, ActionContext(None, False, too_big, True, {})) == [
        ModelAction.LOAD,
        ModelAction.LOAD_ANYWAY,
        ModelAction.DELETE,
    ]
    assert done(MINE, ActionContext(loaded, False, None, False, {})) == [ModelAction.CHAT, ModelAction.UNLOAD]
    other = replace(loaded, context=512)
    assert done(MINE, ActionContext(other, False, None, False, {})) == [
        ModelAction.CHAT,
        ModelAction.LOAD,
        ModelAction.UNLOAD,
    ]
    another = replace(loaded, model="another")
    assert done(MINE, ActionContext(another, False, None, False, {})) == [
        ModelAction.LOAD,
        ModelAction.LOAD_ALONGSIDE,
        ModelAction.DELETE,
    ]
    assert done(MINE, ActionContext(another, True, None, False, {})) == [ModelAction.LOAD, ModelAction.DELETE]
    assert done(MINE, ActionContext(another, False, too_big, True, {})) == [
        ModelAction.LOAD,
        ModelAction.LOAD_ANYWAY,
        ModelAction.DELETE,
    ]
    assert done(offer_item(offer()), IDLE) == [ModelAction.DOWNLOAD]
    both = ActionContext(None, False, None, False, {}, "mine")
    only = shelf_item(models.ShelfModel(name="mine", file_bytes=3 * GIB, downloaded=True, writes=False))
    assert done(only, IDLE) == [ModelAction.LOAD, ModelAction.DELETE]
    assert done(only, both) == [ModelAction.UNLOAD]  # nobody chats with it, and nobody removes it now
    assert done(MINE, both) == [ModelAction.LOAD]  # it may also be loaded to write
    here = offer_item(offer("x", file("Q4_K_M", 1, on_shelf="mine", recommended=True)))
    assert done(here, IDLE) == [ModelAction.SHOW]
    under_way = offer_item(offer("x", file("Q4_K_M", 1, download="d1", recommended=True)))
    now = ActionContext(None, False, None, False, {"d1": convert(download("running"), downloads.Download)})
    assert [action.enabled for action in actions(Setup(under_way), now)] == [False]
    for state in ("paused", "failed"):  # what came of it is not fetched again
        now = ActionContext(None, False, None, False, {"d1": convert(download(state), downloads.Download)})
        texts = [action.text for action in actions(Setup(under_way), now)]
        assert texts == ["Resume at 10.0 GiB of 40.0 GiB"]
    assert actions(Setup(MINE), IDLE)[1] == Action(ModelAction.DELETE, "Delete 3.0 GiB", "danger")
