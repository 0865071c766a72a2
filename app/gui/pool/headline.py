"""The top of the Pool page, with a card for the loaded model and a notice when layers have moved automatically.

The card shows the model, its forecast and measured speed, and a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QFrame, QWidget

from app.api.models import SharedModel
from app.api.plans import LoadedModel, Move, Progress
from app.api.snapshot import FailedLoad
from app.core.errors import Reason
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE, reason_details
from app.gui.app.pool_status import was_reclaimed
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import Theme, set_role
from app.gui.pool.load_forecast import PlanOutcome, unforecast_reason
from app.gui.pool.pool_actions import ModelActions
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import column, row
from app.gui.widgets.notice import Notice, Remark
from app.gui.widgets.progress import Progress as ProgressBar

LEAST_CHARACTERS = 40  # minimum width of the text beside the buttons


@dataclass(frozen=True, slots=True)
class _Summary:
    """The main content of the card."""

    icon: str
    color: str
    title: str
    figures: str = ""


class Headline(QFrame):
    """The card above the map. `show_pool` updates its entire content."""

    def __init__(self, services: AppContext, actions: ModelActions) -> None:
        super().__init__()
        set_role(self, "card")
        self._theme = services.theme
        self._picture = label()
        self.title = ElidedLabel("", "section")
        self.figures = Remark(services.theme, lambda _: services.go(LOG_PAGE))
        self.help = paragraph("", "muted")
        self.help.setAccessibleName(self.tr("What would help"))
        self._bar = ProgressBar(self.tr("Loading"))
        self.choose = button(self.tr("Choose a model"), lambda: services.go(navigation.MODELS))
        self.unload = button(self.tr("Unload"), actions.unload)
        self.cancel = button(self.tr("Cancel"), actions.cancel)
        self.again = button(self.tr("Load again"), actions.load_again)
        self.measure = button(self.tr("Measure speeds"), actions.measure)
        words = row(self._picture, gap=sizes.M)
        words.addLayout(column(self.title, self.figures, self._bar, self.help, gap=sizes.XS), 1)
        left = QWidget()
        left.setLayout(words)
        buttons = (self.measure, self.choose, self.again, self.unload, self.cancel)
        for widget in buttons:
            widget.hide()
        box = Beside(left, *buttons, least=LEAST_CHARACTERS)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(box)

    def show_pool(
        self,
        loaded: LoadedModel | None,
        expected: PlanOutcome,
        *,
        measuring: bool,
        hosts: Sequence[str] | None = None,
        beside: Sequence[str] = (),
        failed: FailedLoad | None = None,
        shared: SharedModel | None = None,
    ) -> None:
        """Show the loaded model and its state.

        expected: the forecast for the loaded model, or for the most recently loaded one. hosts: the names of the
        hosts that answer for this machine if it is a guest, or None. beside: sentences about other loaded models.
        failed: the last load, if it failed. shared: the model of another host that answers while none is loaded here.
        """
        if loaded is None and (hosts is not None or shared is not None):
            expected = PlanOutcome()  # other machines answer, so the forecast of this one is irrelevant
        summary = self._summary(loaded, expected, hosts, failed, shared)
        side = self._theme.px(sizes.XL)
        self._picture.setPixmap(icon(summary.icon, self._theme.color(summary.color).name()).pixmap(side, side))
        self.title.say(summary.title)
        state = loaded.state if loaded else ""
        is_lost, is_loading = state in ("lost", "failed"), state == "loading"
        figures = " ".join(filter(None, (summary.figures, *beside)))
        reason = loaded.reason_facts if loaded and is_lost else None
        self.figures.say(figures, "muted", reason_details(reason) if reason else "")
        self.figures.setVisible(bool(figures))
        advice = expected.advice[0] if expected.advice and not is_loading else ""
        self.help.setText(advice)
        self.help.setVisible(bool(advice))
        self._show_progress(loaded)
        unmeasured = expected.fits and expected.tok_s is None and not expected.unforecast_reason
        self.measure.setVisible(unmeasured and not is_loading)
        self.measure.setEnabled(not measuring)
        self.measure.setText(self.tr("Measuring…") if measuring else self.tr("Measure speeds"))
        self._show_buttons(loaded, named=bool(beside))
        self.again.setVisible(is_lost)

    def _show_buttons(self, loaded: LoadedModel | None, *, named: bool) -> None:
        """Show the buttons that choose or unload a model or cancel a load.

        named: whether the Unload button includes the model's name, because other models are loaded as well.
        """
        is_loading, is_kept = loaded is not None and loaded.state == "loading", loaded is not None
        is_stopping = loaded is not None and loaded.stopping
        self.choose.setVisible(not is_kept)
        self.unload.setVisible(is_kept and not is_loading and not is_stopping)
        self.cancel.setVisible(is_loading and not is_stopping)
        text = self.tr("Unload {model}").format(model=model_name(loaded.model)) if loaded and named else ""
        self.unload.setText(text or self.tr("Unload"))

    def _show_progress(self, loaded: LoadedModel | None) -> None:
        """Show the loading progress of the slowest machine."""
        is_rebuilt = loaded is not None and loaded.state == "recovering" and bool(_unfinished(loaded))
        is_shown = loaded is not None and not loaded.stopping and (loaded.state == "loading" or is_rebuilt)
        self._bar.setVisible(is_shown)
        steps = [step for step in loaded.progress.values() if step.total] if loaded and is_shown else []
        self._bar.tell(min((step.done / step.total for step in steps), default=None))

    def _summary(
        self,
        loaded: LoadedModel | None,
        expected: PlanOutcome,
        hosts: Sequence[str] | None,
        failed: FailedLoad | None,
        shared: SharedModel | None,
    ) -> _Summary:
        if loaded is not None:
            return self._model_summary(loaded, expected)
        if hosts:
            title = self.tr("Ready. Answers come from {machine}").format(machine=", ".join(hosts))
            return _Summary("check", "good", title)
        if hosts is not None:
            return _Summary("warning", "warning", self.tr("No machine is available to answer"))
        if shared is not None:
            title = self.tr("Ready. {model} will answer").format(model=model_name(shared.reference))
            return _Summary("check", "good", title)
        if failed is not None:
            title = self.tr("{model} could not be loaded").format(model=model_name(failed.model))
            why = failed.facts.get("why")
            return _Summary("warning", "error", title, said(why) if isinstance(why, Reason) else str(why or ""))
        return _Summary("models", "muted", self.tr("No model is loaded"), self._forecast(expected))

    def _model_summary(self, loaded: LoadedModel, expected: PlanOutcome) -> _Summary:
        name = model_name(loaded.model)
        if loaded.stopping:
            title = self.tr("Stopping {model}").format(model=name)
            return _Summary("download", "accent", title, self.tr("The model's memory is being freed."))
        trouble = said(loaded.reason_facts) if loaded.reason_facts else ""
        match loaded.state:
            case "loading":
                title = self.tr("Loading {model}").format(model=name)
                return _Summary("download", "accent", title, self._steps(loaded))
            case "ready":
                title = self.tr("Ready. {model} {where}").format(model=name, where=self._place(loaded))
                notice = loaded.recovery.text_facts if loaded.recovery else None  # a machine is about to leave
                figures = self._figures(loaded, expected)
                return _Summary("check", "good", title, f"{said(notice)} {figures}" if notice else figures)
            case "recovering":
                title = self.tr("{model} is being rebuilt").format(model=name)
                steps = self._steps(loaded) if _unfinished(loaded) else ""
                return _Summary("warning", "warning", title, f"{trouble} {steps}".rstrip())
            case _:
                text = self.tr("{model} stopped unexpectedly")
                if is_reclaimed := was_reclaimed(loaded):
                    text = self.tr("{model} is not loaded now")
                trouble = f"{trouble} {self.tr('The next question will load it again.')}".lstrip()
                return _Summary("warning", "warning" if is_reclaimed else "error", text.format(model=name), trouble)

    def _place(self, loaded: LoadedModel) -> str:
        """Describe where the model runs now. Lost replicas are not counted."""
        holders = loaded.holders or [need.key for need in loaded.machines]
        # the first stage is always on the host
        if len(holders) == 1 and loaded.stages and holders[0] == loaded.stages[0].key:
            return self.tr("on this machine")
        roles = [stage.role for stage in loaded.stages if stage.key in holders]
        n_whole = roles.count("whole")
        if len(holders) == 1 or not n_whole:
            return self.tr("on %n machine(s)", "", len(holders))
        if n_whole < len(roles):
            return self.tr("split, with a full copy on %n more machine(s)", "", n_whole)
        return self.tr("with a full copy on each of %n machine(s)", "", len(holders))

    def _forecast(self, expected: PlanOutcome) -> str:
        """Return a sentence with the forecast for a model that is not loaded, or the reason why it does not fit."""
        if not expected.model or not expected.fits:
            return expected.problem if expected.model else ""
        name = model_name(expected.model)
        if expected.unforecast_reason:
            return f"{self.tr('{model} fits.').format(model=name)} {expected.unforecast_reason}"
        if expected.tok_s is None:
            return self.tr("{model} fits. Its speed hasn't been measured yet.").format(model=name)
        text = self.tr("{model} would run at {speed}.")
        if expected.ttft_s is not None:
            text = self.tr("{model} would run at {speed}, with the first token after {first} ({count}-token prompt).")
        return text.format(
            model=name,
            speed=formats.speed_range(expected.tok_s, expected.spread),
            first=formats.seconds_range(expected.ttft_s or 0.0, expected.spread),
            count=formats.number(expected.prompt_tokens),
        )

    def _figures(self, loaded: LoadedModel, expected: PlanOutcome) -> str:
        """Return the measured and forecast speeds of the last answer, or only the forecast before the first answer."""
        if last := loaded.last_answer:
            text = self.tr("Last answer: {fact}. Forecast: {forecast}.")
            figures = text.format(
                fact=formats.speed(last.tok_s), forecast=formats.speed_range(last.forecast_tok_s, last.spread)
            )
            if last.interruptions:
                figures += " " + self.tr("This includes the time it took to replace a lost machine.")
            return figures
        if loaded.forecast is None:
            return unforecast_reason(loaded) or self._why_no_forecast(loaded, expected)
        known, first = loaded.forecast, loaded.first_token
        speed = formats.speed_range(known.decode_tok_s, known.spread)
        text = self.tr("Forecast: {forecast}. No answer measured yet.")
        if first is None:
            return text.format(forecast=speed)
        text = self.tr(
            "Forecast: {forecast}, first token after {first} ({count}-token prompt). No answer measured yet."
        )
        return text.format(
            forecast=speed,
            first=formats.seconds_range(first.ttft_s, known.spread),
            count=formats.number(first.prompt_tokens),
        )

    def _why_no_forecast(self, loaded: LoadedModel, expected: PlanOutcome) -> str:
        """Explain why the loaded model has no forecast.

        `expected` is used only if it is about this model.
        """
        if not expected.fits or expected.model != loaded.model:
            return self.tr("No forecast.")
        if expected.tok_s is not None:
            return self.tr("No forecast: the model was loaded before its speed was measured.")
        return self.tr("No forecast yet: the model's speed hasn't been measured.")

    def _steps(self, loaded: LoadedModel) -> str:
        """Describe what each machine is doing to load the model."""
        words = {
            "cutting": self.tr("extracting layers"),
            "sending": self.tr("receiving layers"),
            "loading": self.tr("loading layers"),
        }
        steps = [f"{machine}: {words.get(step.step, step.step)}" for machine, step in _unfinished(loaded).items()]
        if steps:
            return ", ".join(steps)
        return self.tr("Testing the model") if loaded.progress else self.tr("Preparing")


def _unfinished(loaded: LoadedModel) -> Mapping[str, Progress]:
    """Return the unfinished loading steps, keyed by machine name."""
    return {machine: step for machine, step in loaded.progress.items() if step.done != step.total}


class MoveNotice(Notice):
    """The notice about the most recent automatic move of a loaded model, shown until the user closes it.

    `undo(model)` is called when the user wants to move the layers back.
    """

    def __init__(self, theme: Theme, undo: Callable[[str], object]) -> None:
        super().__init__(theme, close=self._dismiss)
        self._undo = undo
        self._shown: tuple[str, Move] | None = None
        self._dismissed_at = 0.0

    def show_moves(self, models: Sequence[LoadedModel]) -> None:
        """Show the most recent move of these models, unless the user has closed its notice."""
        moves = [(model.model, model.moved) for model in models if model.moved is not None]
        latest = max(moves, key=lambda pair: pair[1].at, default=None)
        if latest is not None and latest[1].at <= self._dismissed_at:
            latest = None
        if latest == self._shown:
            return
        self._shown = latest
        if latest is None:
            self.clear()
            return
        model, move = latest
        undo = (self.tr("Move back"), lambda: self._undo(model))
        actions = [undo] if move.undoable and not move.undoing else []
        self.say(self._sentence(model, move), "info", *actions)

    def _sentence(self, model: str, move: Move) -> str:
        when = self.tr("{model}, {time}:").format(model=model_name(model), time=formats.clock(move.at))
        if move.undoing:
            return f"{when} {self.tr('The layers are moving back and will stay there until you load the model again.')}"
        return " ".join(filter(None, (when, said(move.text_facts), said(move.problem_facts))))

    def _dismiss(self) -> None:
        if self._shown is not None:
            self._dismissed_at = self._shown[1].at
        self._shown = None
        self.clear()
