"""The right side of the Models page, with the details, forecast and buttons of the selected model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLayout, QStackedWidget, QWidget

from app.api.models import Verdict
from app.api.plans import Plan
from app.core.errors import AppError, Reason
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import reason_details
from app.gui.look import sizes
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.models.details.about_view import AboutView
from app.gui.models.details.file_choice import CopyFinder, FileChoice, TokenField
from app.gui.models.details.forecast_view import ForecastView
from app.gui.models.details.model_actions import ActionContext, ActionFoot, actions
from app.gui.models.details.plan_loader import PlanLoader, Setup
from app.gui.models.details.setup_form import EXACT, SetupForm
from app.gui.models.details.verdict_view import VerdictView
from app.gui.models.model_item import ItemKind, ModelItem
from app.gui.models.model_loading import LoadSteps, ModelLoader
from app.gui.models.verdicts import VerdictLoader
from app.gui.widgets.buttons import button
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import FullHeightFrame
from app.gui.widgets.layouts import EmptyState, column, line
from app.gui.widgets.notice import Remark
from app.gui.widgets.scroll_area import CardScrollArea

MIN_HEIGHT = 2 * sizes.XXL  # three lines of text; if less is available, the page scrolls


class Details(FullHeightFrame):
    """The details of a model. `pressed(action, setup)` is emitted when the user clicks a button."""

    pressed = Signal(object, object)  # ModelAction, Setup
    recommend = Signal()
    smaller = Signal(object, str)  # local ModelItem, quantization to show instead

    def __init__(
        self, services: AppContext, verdict_loader: VerdictLoader, plan_loader: PlanLoader, model_loader: ModelLoader
    ) -> None:
        super().__init__()
        self._services, self._verdict_loader = services, verdict_loader
        self._plan_loader, self._model_loader = plan_loader, model_loader
        self.copies = CopyFinder(services, self)
        self.item: ModelItem | None = None
        self._need_bytes = 0  # memory needed by a model that does not fit
        self._make_form()

    def remaining_steps(self) -> tuple[Callable[[], object], ...]:
        """Return the steps that create the remaining widgets. Running them all in one go would freeze the window."""
        return self._make_words, self._make, self._wire, lambda: self.show_item(None)

    @property
    def setup(self) -> Setup | None:
        """The selected model with its load settings, or None if no model is selected."""
        if self.item is None:
            return None
        snapshot = self._services.pool.now
        joins = self.item.is_here and bool(snapshot.models) and snapshot.model(self.item.name) is None
        return replace(self.form.setup(self.item, self.files.file), may_join=joins)

    def show_item(self, item: ModelItem | None) -> None:
        """Show another model, or updated information about the current one."""
        same = item is not None and self.item is not None and item.key == self.item.key
        self.item = item
        self._stack.setCurrentIndex(0 if item is None else 1)
        if item is None:
            self._plan_loader.forget()
            return
        kept = self.files.file if same else None
        self.about.show_item(item)
        self.files.show_item(item, kept)
        self.token.setVisible(item.is_gated)
        if not same:
            self._begin(item)
            self.plan()
        else:
            self.plan_again()
        self.copies.ask(item, item.file(self.files.file))
        self.update_actions()

    def plan(self) -> None:
        """Request a plan for the current setup."""
        setup = self.setup
        if setup is None:
            return
        if setup.item.needs_files:
            self._plan_loader.forget()  # drop pending plans for the previous model
        else:
            self._plan_loader.ask(setup)

    def plan_again(self) -> None:
        """Request a new plan after a change not made by the user.

        A measurement in progress is not interrupted, because a new plan follows it anyway.
        """
        if not self._plan_loader.measuring:
            self.plan()

    def ask_token(self) -> None:
        """Ask for an access token after a download that requires one was refused."""
        self.token.show()
        self.token.request_state()

    def update_actions(self) -> None:
        """Update the buttons and notes to reflect the current state of the model."""
        setup = self.setup
        if setup is None:
            return
        mine = self._model_loader.model == setup.item.name
        self.steps.setVisible(mine)
        self._body.setVisible(not mine)
        self.foot.setVisible(not mine)
        if mine:
            self.steps.show_steps(setup.item.name, self._model_loader.steps)
        self.foot.beside.setVisible(setup.may_join and self.foot.beside.judgment is not None)
        self.foot.bar.show_actions(actions(setup, self._action_context()))
        self._update_lost(setup.item)
        loaded = self._services.pool.now.model(setup.item.name)
        self.about.show_notes(setup.item, None if setup.item.is_guide else loaded)

    def shown_layout(self) -> QLayout | None:
        shown = self._stack.currentWidget() if self.layout() is not None else None
        return shown.layout() if shown is not None else None

    # Internals

    def _make_form(self) -> None:
        self.about, self.files = AboutView(), FileChoice()
        self.token = TokenField(self._services.client)
        self.form = SetupForm(self._services.pool)

    def _make_words(self) -> None:
        theme, plan_loader = self._services.theme, self._plan_loader
        self.verdict = VerdictView(theme, self.form.context.choose, self._use_file)
        self.forecast = ForecastView(plan_loader.measure, plan_loader.stop_measuring, plan_loader.measure_again)
        self.steps = LoadSteps(self._model_loader.cancel)
        self.lost = Remark(theme, self._services.go)
        self.foot = ActionFoot()

    def _make(self) -> None:
        set_role(self, "card")
        self._body = QWidget()
        inside = QWidget()
        inside.setLayout(column(self.form, self.verdict.memory, self.forecast.reasons, gap=sizes.L))
        self.fold = Fold(self._services.theme, self.tr("Settings and details"), inside)
        self._body.setLayout(column(self.verdict, self.forecast, line(), self.fold, gap=sizes.L))
        inner = QWidget()
        box = column(self.about, self.files, self.token, self.lost, self.steps, self._body)
        box.setSpacing(sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        box.addStretch(1)
        self._area = CardScrollArea(inner)
        inner.setLayout(box)
        whole = QWidget()
        halves = column(self._area, self.foot, gap=0)
        halves.setStretch(0, 1)
        whole.setLayout(halves)
        words = self.tr("Choose a model on the left to see whether it fits and how fast it would run.")
        self._stack = QStackedWidget()
        set_role(self._stack, "inside")
        search = button(self.tr("Find a model that fits"), self.recommend.emit)
        self._stack.addWidget(EmptyState(self.tr("No model selected"), words, search))
        self._stack.addWidget(whole)
        self.setLayout(column(self._stack))
        self._services.theme.changed.connect(self._size)
        self._size()

    def _size(self) -> None:
        """Make the scroll area tall enough to show at least a few lines."""
        self._area.setMinimumHeight(self._services.theme.px(MIN_HEIGHT))

    def _wire(self) -> None:
        self.form.changed.connect(self._set_up)
        self.files.changed.connect(self._file_chosen)
        self._verdict_loader.changed.connect(self._update_smaller)
        self.foot.bar.pressed.connect(lambda do: self.pressed.emit(do, self.setup))
        self.about.recommend.connect(self.recommend)
        plan_loader = self._plan_loader
        plan_loader.planned.connect(self._planned)
        plan_loader.refused.connect(self._refused)
        plan_loader.estimated.connect(self._estimated)
        plan_loader.joined.connect(self._joined)
        plan_loader.step.connect(self.forecast.show_step)
        plan_loader.measuring_changed.connect(self._measuring)
        self._model_loader.changed.connect(self.update_actions)
        self.copies.changed.connect(self.update_actions)

    def _begin(self, item: ModelItem) -> None:
        """Show a newly selected model before its verdict is known."""
        loaded = self._services.pool.now.model(item.name) if item.is_here else None
        if loaded is not None:
            drafts = loaded.draft_ordered not in (None, "none")
            self.form.show_item(item, loaded.context, loaded.kv, loaded.shape_ordered, exact=loaded.exact, draft=drafts)
        else:
            self.form.show_item(item, None, exact=self._services.pool.now.exact)
        known = self._verdict_loader.of(item)
        words = self.tr("Looking up the model's files…") if item.needs_files else self._unsized(item)
        if known is None or not item.is_here:
            self.verdict.clear(words)
            self.forecast.clear()
        self._need_bytes = 0
        if item.is_gated:
            self.token.request_state()
        self._area.verticalScrollBar().setValue(0)

    def _unsized(self, item: ModelItem) -> str:
        """Explain that the verdict is unknown because the file size is unknown, or return an empty string."""
        file = item.file()
        if item.kind is not ItemKind.OFFER or file is None or file.size_bytes:
            return ""
        return self.tr("The file size is not known yet, so Poolhouse can't tell whether the model fits.")

    def _set_up(self) -> None:
        self.plan()
        self.update_actions()

    def _file_chosen(self) -> None:
        self.plan()
        if self.item is not None:
            self.copies.ask(self.item, self.item.file(self.files.file))
        self.update_actions()

    def _planned(self, plan: Plan) -> None:
        plan = plan.as_shown()
        judgment = self.verdict.show_plan(plan)
        self.form.kv.show_bytes(plan.kv_bytes)
        self.form.shape.show_plan(plan)
        self.forecast.show_plan(plan, missing=self.item is not None and self.item.is_missing)
        self._need_bytes = 0
        if self.item is not None and self._has_default_settings():
            self._verdict_loader.put(self.item, judgment)
        self.update_actions()

    def _refused(self, error: AppError) -> None:
        judgment = self.verdict.show_error(error)
        self.form.kv.show_bytes({})
        self.form.shape.show_plan(None)
        self.forecast.clear()
        self._need_bytes = int(error.reason.number("need_bytes"))
        self._update_smaller()
        if judgment is not None and self.item is not None and self._has_default_settings():
            self._verdict_loader.put(self.item, judgment)
        self.update_actions()

    def _update_smaller(self) -> None:
        """Offer a smaller quantization that fits, if a local model is too big."""
        known = self._verdict_loader.of(self.item) if self.item and self.item.is_here else None
        if known is not None and self._has_default_settings():
            self.verdict.show_smaller(known.quantization)

    def _use_file(self, quantization: str) -> None:
        if self.item is not None and self.item.is_here:
            self.smaller.emit(self.item, quantization)
        else:
            self.files.choose(quantization)

    def _estimated(self, estimate: Verdict) -> None:
        if self.item is None:
            return
        known, best = self._verdict_loader.of(self.item), self.item.file()
        is_best = best is not None and self.files.file == best.file
        smaller = known.quantization if known and is_best else ""
        self.verdict.show_estimate(estimate, smaller, splits=self.item.splits)
        if estimate.plan is not None:
            self.form.kv.show_bytes(estimate.plan.kv_bytes)
            self.forecast.show_estimate(estimate.plan, estimate.unforecast_facts)
        else:
            self.form.kv.show_bytes({})
            self.forecast.clear()
        self.update_actions()

    def _joined(self, result: Plan | AppError | None) -> None:
        self.foot.beside.show_result(result)
        self.update_actions()

    def _measuring(self) -> None:
        self.forecast.show_measuring(self._plan_loader.measuring)
        if not self._plan_loader.measuring:
            self.plan()

    def _has_default_settings(self) -> bool:
        """Return whether the current settings are those assumed by the verdicts in the list."""
        setup = self.setup
        return (
            setup is not None
            and setup.users == 1
            and not setup.without
            and setup.kv == EXACT
            and setup.shape is None
            and not setup.exact
            and self._has_default_context()
        )

    def _has_default_context(self) -> bool:
        slider = self.form.context
        return slider.context == slider.default

    def _action_context(self) -> ActionContext:
        snapshot = self._services.pool.now
        total_bytes = next((machine.total_bytes for machine in snapshot.machines.values() if machine.this), None)
        chosen = snapshot.model(self.item.name) if self.item is not None else None
        return ActionContext(
            chosen or snapshot.loaded,
            bool(self._model_loader.model),
            self.verdict.judgment,
            0 < self._need_bytes <= (total_bytes or 0),
            snapshot.downloads,
            snapshot.embeds.model if snapshot.embeds else "",
            self.foot.beside.judgment,
            self.copies.machines,
        )

    def _update_lost(self, item: ModelItem) -> None:
        snapshot = self._services.pool.now
        loaded, failed = snapshot.model(item.name), snapshot.load_failed
        words, details = "", ""
        if loaded is not None:
            if loaded.state in ("lost", "failed") and loaded.reason_facts is not None:
                words, details = said(loaded.reason_facts), reason_details(loaded.reason_facts)
        elif item.is_here and failed is not None and failed.model == item.name:  # the model fits, but loading it failed
            why = failed.facts.get("why")
            words = self.tr("The last attempt to load this model failed. {why}").format(
                why=said(why) if isinstance(why, Reason) else why or ""
            )
        self.lost.say(words, details=details)
        self.lost.setVisible(bool(words))
        self.forecast.show_factor(snapshot.forecasts.factor)
        self.forecast.show_fact(loaded.last_answer if loaded is not None and item.is_here else None)
