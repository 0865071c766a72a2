"""The head of the Pool page: what is loaded, forecast against fact, what would help most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from app.core.planner.speed_estimates import is_rough
from app.gui.api.node_state import under_way
from app.gui.app.mending_places import inner_of
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.sentences import here, model_name, reason_of, trouble
from app.gui.look.theme import Theme, set_role
from app.gui.pool.load_forecast import Expected, never
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label, paragraph
from app.gui.widgets.layouts import column, row
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress

Json = dict[str, Any]
LEAST_CHARACTERS = 40  # of the words beside the buttons


@dataclass(frozen=True, slots=True)
class HeadlineActions:
    """What the head's buttons do."""

    choose: Callable[[], object]
    unload: Callable[[], object]
    again: Callable[[], object]
    cancel: Callable[[], object]
    measure: Callable[[], object]
    log: Callable[[], object]


class Headline(QFrame):
    """`show_pool` fills it; nothing in it is kept from before."""

    def __init__(self, theme: Theme, acts: HeadlineActions) -> None:
        super().__init__()
        set_role(self, "card")
        self._theme = theme
        self._picture = label()
        self.title = Elided("", "section")
        self.figures = Remark(theme, lambda _: acts.log())
        self.help = paragraph("", "muted")
        self.help.setAccessibleName(self.tr("What would help"))
        self._bar = Progress(self.tr("Loading"))
        self.choose = button(self.tr("Choose a model"), acts.choose)
        self.unload = button(self.tr("Unload"), acts.unload)
        self.cancel = button(self.tr("Cancel"), acts.cancel)
        self.again = button(self.tr("Load again"), acts.again)
        self.measure = button(self.tr("Measure speeds"), acts.measure)
        words = row(self._picture, gap=sizes.M)
        words.addLayout(column(self.title, self.figures, self._bar, self.help, gap=sizes.XS), 1)
        told = QWidget()
        told.setLayout(words)
        buttons = (self.measure, self.choose, self.again, self.unload, self.cancel)
        for one in buttons:
            one.hide()
        box = Beside(told, *buttons, least=LEAST_CHARACTERS)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(box)

    def show_pool(
        self,
        loaded: Json | None,
        expected: Expected,
        *,
        measuring: bool,
        hosts: list[str] | None = None,
        beside: Sequence[str] = (),
        failed: str = "",
        why: str = "",
    ) -> None:
        """`expected`: what the planner says now, of the model that is loaded or was. hosts: a guest's.
        beside: what is said of other models. failed: a model that could not be loaded, and why."""
        state = str((loaded or {}).get("state") or "")
        stopping = bool((loaded or {}).get("stopping"))
        if not loaded and hosts is not None:
            expected = Expected()  # others answer: what this machine could do is not asked
            picture, colour, title, figures = _guest(self, hosts)
        elif not loaded and failed:
            text = self.tr("{model} could not be loaded")
            picture, colour, title = "warning", "error", text.format(model=model_name(failed))
            figures = here(why)
        else:
            picture, colour, title, figures = _told(self, loaded, expected)
        self._paint(picture, colour)
        self.title.say(title)
        figures = " ".join(one for one in (figures, *beside) if one)
        lost = loaded if state in ("lost", "failed") else None
        self.figures.say(figures, "muted", inner_of(reason_of(lost)) if lost else "")
        self.figures.setVisible(bool(figures))
        name = model_name(str((loaded or {}).get("model")))
        self.unload.setText(self.tr("Unload {model}").format(model=name) if beside else self.tr("Unload"))
        rebuilt = state == "recovering" and under_way(loaded)
        self._progress(loaded if (state == "loading" or rebuilt) and not stopping else None)
        advice = expected.advice[0] if expected.advice and state != "loading" else ""
        self.help.setText(advice)
        self.help.setVisible(bool(advice))
        unmeasured = expected.fits and expected.tok_s is None and not expected.never
        self.measure.setVisible(unmeasured and state != "loading")
        self.measure.setEnabled(not measuring)
        self.measure.setText(self.tr("Measuring…") if measuring else self.tr("Measure speeds"))
        held, comes = state not in ("", "loading"), state == "loading"
        _show_only((self.choose, not loaded), (self.unload, held and not stopping))
        _show_only((self.cancel, comes and not stopping), (self.again, state in ("lost", "failed")))

    def _paint(self, name: str, colour: str) -> None:
        side = self._theme.px(sizes.XL)
        token = self._theme.colour(colour).name()
        self._picture.setPixmap(icon(name, token).pixmap(side, side))

    def _progress(self, loaded: Json | None) -> None:
        """How far loading is, on the machine that is behind."""
        steps = [one for one in ((loaded or {}).get("progress") or {}).values() if one.get("total")]
        self._bar.setVisible(loaded is not None)
        self._bar.tell(min((one["done"] / one["total"] for one in steps), default=None))


def _told(head: Headline, loaded: Json | None, expected: Expected) -> tuple[str, str, str, str]:
    """Picture, colour, title, figures."""
    if not loaded:
        return "models", "muted", head.tr("No model is loaded"), _outlook(head, expected)
    model = model_name(str(loaded.get("model")))
    if loaded.get("stopping"):
        title = head.tr("{model} is being stopped").format(model=model)
        return "download", "accent", title, head.tr("It gives its memory back.")
    match loaded.get("state"):
        case "loading":
            title = head.tr("Loading {model}").format(model=model)
            return "download", "accent", title, _step(head, loaded)
        case "ready":
            title = head.tr("Ready. {model} {where}").format(model=model, where=_where(head, loaded))
            told = here(str((loaded.get("recovery") or {}).get("text") or ""))  # who leaves
            figures = _figures(head, loaded, expected)
            return "check", "good", title, " ".join(one for one in (told, figures) if one)
        case "recovering":
            title = head.tr("{model} is being rebuilt").format(model=model)
            steps = [_step(head, loaded)] if under_way(loaded) else []
            told = " ".join((trouble(loaded), *steps))
            return "warning", "warning", title, told
        case _:
            title = head.tr("{model} was lost").format(model=model)
            return "warning", "error", title, trouble(loaded)


def _guest(head: Headline, hosts: list[str]) -> tuple[str, str, str, str]:
    """Who answers for this machine."""
    if not hosts:
        return "warning", "warning", head.tr("No host is here to answer"), ""
    title = head.tr("Ready. Answers come from {machine}").format(machine=", ".join(hosts))
    return "check", "good", title, ""


def _where(head: Headline, loaded: Json) -> str:
    """Who holds it now: of several pipelines those that are not lost."""
    stages = loaded.get("stages") or [{}]
    there = loaded.get("holders") or [one.get("id") for one in loaded.get("machines") or ()]
    n_machines = len(there)
    if n_machines == 1 and there[0] == stages[0].get("id"):  # the first stage is the host's
        return head.tr("on this machine")
    roles = [one.get("role") for one in stages if one.get("id") in there]
    n_whole = roles.count("whole")
    if n_machines == 1 or not n_whole:
        return head.tr("on %n machine(s)", "", n_machines)
    if n_whole < len(roles):
        return head.tr("split, and whole on %n more machine(s)", "", n_whole)
    return head.tr("whole on each of %n machine(s)", "", n_machines)


def _outlook(head: Headline, expected: Expected) -> str:
    if not expected.model:
        return ""
    if not expected.fits:
        return expected.problem
    if expected.never:
        fits = head.tr("{model} fits.").format(model=model_name(expected.model))
        return f"{fits} {expected.never}"
    if expected.tok_s is None:
        text = head.tr("{model} fits. Its speed here is not measured yet.")
        return text.format(model=model_name(expected.model))
    text = head.tr("{model} would run at {speed}.")
    if expected.ttft_s is not None:
        text = head.tr("{model} would run at {speed}, with the first word after {first} (prompt of {count}).")
    told = text.format(
        model=model_name(expected.model),
        speed=formats.speed(expected.tok_s),
        first=formats.seconds(expected.ttft_s or 0.0),
        count=formats.number(expected.prompt_tokens),
    )
    return told + _rough(head, expected.tok_s)


def _rough(head: Headline, tok_s: float) -> str:
    """What a forecast of a very small model is worth."""
    words = head.tr("Rough: with so small a model, what else the computers do weighs as much.")
    return f" {words}" if is_rough(tok_s) else ""


def _figures(head: Headline, loaded: Json, expected: Expected) -> str:
    """Forecast against fact: of the last answer its own forecast, else of a typical request."""
    last, forecast = loaded.get("last_answer"), loaded.get("forecast")
    if last:
        text = head.tr("Last answer {fact}, forecast {forecast}.")
        told = text.format(fact=formats.speed(last["tok_s"]), forecast=formats.speed(last["forecast_tok_s"]))
        if last.get("interruptions"):
            told += " " + head.tr("A machine was lost or changed during it, which took part of its time.")
        return told + _rough(head, last["forecast_tok_s"])
    if forecast:
        first = loaded.get("first_token") or {}  # the same as on the Models page
        text = head.tr("Forecast {forecast}. No answer measured yet.")
        if first:
            text = head.tr("Forecast {forecast}, first word after {first} (prompt of {count}). No answer measured yet.")
        told = text.format(
            forecast=formats.speed(forecast["decode_tok_s"]),
            first=formats.seconds(first.get("ttft_s", 0.0)),
            count=formats.number(first.get("prompt_tokens", 0)),
        )
        return told + _rough(head, forecast["decode_tok_s"])
    return never(loaded) or _unforecast(head, loaded, expected)


def _unforecast(head: Headline, loaded: Json, expected: Expected) -> str:
    """Why what is loaded has no forecast; what the planner says now tells it only of the same model."""
    if not expected.fits or expected.model != loaded.get("model"):
        return head.tr("No forecast.")
    if expected.tok_s is not None:
        return head.tr("No forecast: it was loaded before its speed here was measured.")
    return head.tr("No forecast: its speed here is not measured yet.")


def _step(head: Headline, loaded: Json) -> str:
    """What each machine does, in a few words."""
    words = {
        "cutting": head.tr("cutting layers"),
        "sending": head.tr("receiving layers"),
        "loading": head.tr("loading layers"),
    }
    told = [
        f"{machine}: {words.get(str(one.get('step')), str(one.get('step')))}"
        for machine, one in under_way(loaded).items()
    ]
    if told:
        return ", ".join(told)
    return head.tr("Checking that it answers") if loaded.get("progress") else head.tr("Preparing")


def _show_only(*shown: tuple[QPushButton, bool]) -> None:
    for one, wanted in shown:
        one.setVisible(wanted)
