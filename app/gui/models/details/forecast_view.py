"""The forecast of a plan, with two figures, the reasons for the placement, and advice on increasing the speed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.api.plans import AnswerOutcome, Forecast, Plan, Progress
from app.core.errors import Reason
from app.core.planner.forecast_range import DISTURBED_LOAD
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import clear_layout, column, row
from app.gui.widgets.progress import Progress as ProgressBar


class Figure(QWidget):
    """A large number with a caption below it."""

    def __init__(self, caption: str) -> None:
        super().__init__()
        self._figure, self._caption = label("", "figure"), ElidedLabel(caption, "caption")
        self.setLayout(column(self._figure, self._caption, gap=0))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def say(self, figure: str, caption: str) -> None:
        self._figure.setText(figure)
        self._caption.say(caption)
        self.updateGeometry()
        self._figure.setAccessibleName(f"{caption}: {figure}")

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """Return a size that is wide enough for the whole caption."""
        words = self._caption.fontMetrics().horizontalAdvance(self._caption.whole())
        hint = super().sizeHint()
        return QSize(max(hint.width(), words + 1), hint.height())

    @property
    def text(self) -> str:
        return self._figure.text()


class ForecastView(QWidget):
    """The forecast of a plan. `measure` and `stop` start and cancel a measurement, and `again` repeats one.

    The parent widget places `reasons` separately.
    """

    def __init__(self, measure: Callable[[], object], stop: Callable[[], object], again: Callable[[], object]) -> None:
        super().__init__()
        self.rate, self.first = Figure(self.tr("forecast")), Figure(self.tr("first token"))
        self._figures = QWidget()
        self._figures.setLayout(Flow(self.rate, self.first, gap=sizes.L))
        self.fact = paragraph("", "muted")
        self.fact.hide()
        self._last: AnswerOutcome | None = None
        self._busy = ""  # why no forecast is shown although it was measured
        self._factor: float | None = None  # of measured to forecast speeds on a quiet computer
        self._unmeasured = paragraph("", "muted")
        # what busy computers measured is known, so only a repetition measures anything
        self.measure = button(self.tr("Measure now"), lambda: again() if self._busy else measure())
        self.again = button(self.tr("Measure again"), again, "inline")  # placed with the reasons
        self.disturbed = paragraph("", "muted")
        self._stop = button(self.tr("Cancel"), stop)
        self._bar = ProgressBar(self.tr("Measuring"))
        self._step = label("", "caption")
        self._reasons, self._advice = column(gap=sizes.S), column(gap=sizes.S)
        self._said: tuple[list[str], list[str]] = ([], [])
        self._why = label(self.tr("Why this placement"), "section")
        self._help = label(self.tr("What would help"), "section")
        actions = row(self.measure, self._stop, None)
        self.setLayout(
            column(self._figures, self.disturbed, self.fact, self._unmeasured, actions, self._step, self._bar)
        )
        self.reasons = QWidget()
        self.reasons.setLayout(column(self._why, self._reasons, row(self.again, None), self._help, self._advice))
        self.show_measuring(False)

    def show_plan(self, plan: Plan, *, missing: bool = False) -> None:
        """Show the plan of a local model. If its file is `missing`, nothing can be measured."""
        codes = {reason.code for reason in plan.why} - {"unforecast_busy"}  # busy computers will be quiet again
        never = any(code.startswith("unforecast") for code in codes)
        self._busy = next((said(why.reason) for why in plan.why if why.code == "unforecast_busy"), "")
        self._show(plan, [], possible=not never and not missing)
        self._show_disturbed(plan)
        self.again.setVisible(plan.forecast is not None and not missing and not self._stop.isVisibleTo(self))

    def show_estimate(self, plan: Plan, unforecast: Reason | None) -> None:
        """Show the estimated plan of a model that is not local.

        unforecast: the reason why the speed cannot be forecast, or None.
        """
        reasons = [said(unforecast)] if unforecast is not None else []
        self._busy = ""
        self._show(plan, reasons, possible=not reasons)
        self._show_disturbed(plan)
        self.again.hide()

    def _show_disturbed(self, plan: Plan) -> None:
        """Show which machine was busy while it was measured, if the forecast is shown nevertheless."""
        name = plan.forecast.disturbed if plan.forecast is not None else ""
        words = self.tr(
            "{machine} was busy while it was measured, so this forecast is rough. Poolhouse will "
            "measure again when {machine} is idle."
        )
        self.disturbed.setText(words.format(machine=name))
        self.disturbed.setVisible(bool(name))

    def _show(self, plan: Plan, more_reasons: list[str], *, possible: bool) -> None:
        forecast = plan.forecast
        asks = forecast is None and possible and not self._stop.isVisibleTo(self)
        self._figures.setVisible(forecast is not None)
        self._unmeasured.setVisible(asks)
        self.measure.setVisible(asks)
        if forecast is not None:
            self._show_figures(forecast, plan)
        self.show_fact(self._last)
        reasons = [
            said(why.reason) for why in plan.why if forecast is not None or not why.code.startswith("plan_unmeasured")
        ]
        self._say([*reasons, *more_reasons], [said(advice.reason) for advice in plan.advice])
        self.show()

    def show_factor(self, factor: float | None) -> None:
        """Show the ratio of measured to forecast speed for answers on an otherwise idle computer."""
        if factor != self._factor:
            self._factor = factor
            self.show_fact(self._last)

    def show_fact(self, last: AnswerOutcome | None) -> None:
        """Show the times of the last answer next to their forecast."""
        self._last = last
        self.fact.setVisible(last is not None)
        unmeasured = self.tr("Not measured yet. A ten-second test gives you a forecast.")
        if last is not None:
            unmeasured = self.tr("These settings have not been measured yet. A ten-second test gives you a forecast.")
        self._unmeasured.setText(self._busy or unmeasured)
        if last is not None:
            words = self.tr(
                "Last answer: {rate}, first token after {first}. The forecast for the same lengths and machines was "
                "{rate_before}, first token after {first_before}."
            )
            sentences = words.format(
                rate=formats.speed(last.tok_s),
                rate_before=formats.speed_range(last.forecast_tok_s, last.spread),
                first=formats.seconds(last.ttft_s),
                first_before=formats.seconds_range(last.forecast_ttft_s, last.spread),
            )
            if last.other_load is not None and last.other_load > DISTURBED_LOAD:
                share = formats.percent(last.other_load)
                sentences += " " + self.tr("Other programs used {share} of the processor.").format(share=share)
            elif self._factor is not None:
                factor = formats.number(self._factor, 2)
                sentences += " " + self.tr(
                    "When the computer was otherwise idle, answers were {factor} times as fast as forecast."
                ).format(factor=factor)
            if last.interruptions:
                sentences += " " + self.tr("This answer took longer because a machine was lost or replaced.")
            if not self._figures.isHidden():
                sentences += " " + self.tr("The figures above apply to a typical request with these settings.")
            self.fact.setText(sentences)

    def show_measuring(self, on: bool) -> None:
        self._stop.setVisible(on)
        self._bar.setVisible(on)
        self._step.setVisible(on)
        if on:
            self._unmeasured.hide()
            self.measure.hide()
            self.again.hide()
            self._bar.tell(None)
            self._step.setText(self.tr("Measuring…"))

    def show_step(self, step: Progress) -> None:
        """Show the progress of a measurement."""
        self._bar.tell(step.done / step.total if step.total else None)
        words = self.tr("Measuring {machine}…") if step.machine else self.tr("Measuring…")
        self._step.setText(words.format(machine=step.machine))

    def _show_figures(self, forecast: Forecast, plan: Plan) -> None:
        users = plan.users
        rate = forecast.together_tok_s if users > 1 else forecast.decode_tok_s
        many, alone = self.tr("forecast for {count} simultaneous users"), self.tr("forecast")
        caption = many if users > 1 else alone
        self.rate.say(formats.speed_range(rate, forecast.spread), caption.format(count=users))
        if plan.first_token is not None:
            count = formats.number(plan.first_token.prompt_tokens)
            first = self.tr("first token ({count}-token prompt)").format(count=count)
            self.first.say(formats.seconds_range(plan.first_token.ttft_s, forecast.spread), first)

    def _say(self, reasons: list[str], advice: list[str]) -> None:
        if (reasons, advice) != self._said:
            self._said = (reasons, advice)
            for box, sentences, role in ((self._reasons, reasons, "muted"), (self._advice, advice, "")):
                clear_layout(box)
                for sentence in sentences:
                    box.addWidget(paragraph(sentence, role))
        self._why.setVisible(bool(reasons))
        self._help.setVisible(bool(advice))
        self.reasons.setVisible(bool(reasons or advice))

    def clear(self) -> None:
        """Hide everything because there is no plan."""
        self.hide()
        self.reasons.hide()
