"""The last page of the first run, on which a first model is chosen, downloaded if necessary, and loaded."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QButtonGroup, QWidget

from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import GUIDE
from app.gui.models.model_loading import LoadSteps
from app.gui.models.model_starter import ModelStarter, Stage
from app.gui.models.transfers import of_download
from app.gui.welcome.first_models import Choice, FirstModels, Source
from app.gui.welcome.household_picture import HouseholdPicture
from app.gui.welcome.option import Option
from app.gui.welcome.split_choice import SplitChoice, is_shipped
from app.gui.welcome.step import Step
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, clear_layout, column, layout_widget, row
from app.gui.widgets.progress import Progress


class ModelPage(Step):
    """The page with the recommended models. When one has been loaded, the first run ends in a chat with it."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Your first model"), "")
        self.models = FirstModels(services, self)
        # its parent is the pool, so that a download that goes on after the first run still ends in a load
        self.starter = ModelStarter(services, services.pool)
        self._shown: tuple[Choice, ...] = ()
        self._key = ""  # the choice that the user clicked
        self._group = QButtonGroup(self)
        self.options: dict[str, Option] = {}
        self._list = column(gap=sizes.M)
        self.choice = layout_widget(self._list)
        self.split = SplitChoice(services.pool)
        self.note = paragraph("", "muted")
        self.picture = HouseholdPicture(services)
        self.progress = StartProgress(self.starter)
        self.meanwhile = button(self.tr("Ask the Guide meanwhile"), self._ask_guide, "inline")
        waits = layout_widget(row(self.meanwhile, None))
        for part in (self.picture, self.choice, self.split, self.note, self.progress, waits):
            self.content.addWidget(part)
        self.models.changed.connect(self._show)
        self.starter.changed.connect(self._starter_changed)
        self.starter.ready.connect(self._ready)
        self.starter.failed.connect(self.failed)
        services.pool.changed.connect(self._pool_changed)
        self._was_there, self._was_busy = services.pool.is_there, False
        self._show()

    @property
    def chosen(self) -> Choice | None:
        """The selected model, or None if there is none to choose."""
        known = {choice.key: choice for choice in self._shown}
        return known.get(self._key) or next(iter(self._shown), None)

    @property
    def main_label(self) -> str:
        chosen = self.chosen
        if self._is_guest:
            return self.tr("Start chatting")
        if self.starter.is_busy:
            return ""  # a second click on the same button must not do something else
        if chosen is None:
            return self.tr("Ask the Guide")
        match chosen.source:
            case Source.HOUSEHOLD:
                return self.tr("Start chatting")
            case Source.DOWNLOAD:
                return self.tr("Download and load")
            case _ if self._is_loaded(chosen):
                return self.tr("Start chatting")
            case _:
                return self.tr("Load")

    @property
    def quiet_label(self) -> str:
        if self.starter.is_busy:
            return self.tr("Stop")
        return "" if self.chosen is None or self._is_guest else self.tr("Start with the Guide")

    @property
    def can_go_back(self) -> bool:
        return not self.starter.is_busy

    @property
    def next_page(self) -> str:
        """The address of the page that opens if the user chooses no model."""
        return navigation.CHAT if self._is_guest else f"{navigation.CHAT}/{GUIDE}"

    def press_main(self) -> None:
        chosen = self.chosen
        if self._is_guest or chosen is None:
            self.left.emit(self.next_page)
        elif chosen.item is None:
            self.left.emit(f"{navigation.CHAT}/{chosen.reference}")
        elif self._is_loaded(chosen):
            self.left.emit(f"{navigation.CHAT}/{chosen.item.name}")
        elif not self.starter.is_busy:
            self.retried.emit()
            self.models.stop_measuring()
            self.starter.start(chosen.item, chosen.file, self.split.shape)

    def press_quiet(self) -> None:
        if self.starter.is_busy:
            self.starter.stop()
        else:
            self.left.emit(self.next_page)

    def entered(self) -> None:
        self._shown = ()
        self.models.ask()
        self.picture.refresh()
        self._show()

    def cancel(self) -> None:
        self.models.end()
        self.starter.is_alone = self.starter.is_busy

    @property
    def _is_guest(self) -> bool:
        """Return whether other hosts answer for this computer."""
        return self.services.pool.now.hosts is not None

    def _is_loaded(self, choice: Choice) -> bool:
        loaded = self.services.pool.now.model(choice.item.name) if choice.item is not None else None
        return loaded is not None and loaded.state == "ready" and choice.source is Source.HERE

    def _pool_changed(self) -> None:
        is_there = self.services.pool.is_there
        if is_there and not self._was_there and self.isVisible() and not self.starter.is_busy:
            self.models.ask()
        self._was_there = is_there
        if self.isVisible():
            self._show()

    def _starter_changed(self) -> None:
        self._show()
        self.changed.emit()
        if self.starter.is_busy != self._was_busy:
            self._was_busy = self.starter.is_busy
            if not self._was_busy:
                self.models.ask()
            self.moved.emit()

    def _ready(self, model: str) -> None:
        if not self.isHidden():
            self.left.emit(f"{navigation.CHAT}/{model}")

    def _ask_guide(self) -> None:
        """End the first run in a chat with the Guide. The chosen model is loaded once its file is complete."""
        self.left.emit(f"{navigation.CHAT}/{GUIDE}")

    def _pick(self, key: str) -> None:
        self._key = key
        self.split.show_for(self.chosen)
        self.changed.emit()

    def _show(self) -> None:
        """Show the available models, or the progress of the chosen one."""
        busy = self.starter.is_busy
        choices = () if self._is_guest else in_place(self._shown, self.models.choices())
        if not busy and choices != self._shown:
            self._shown = choices
            self._fill()
            self.changed.emit()
        self.choice.setVisible(not busy and bool(self._shown))
        chosen = self.chosen
        self.split.show_for(None if busy or (chosen is not None and self._is_loaded(chosen)) else chosen)
        self.progress.setVisible(busy)
        self.meanwhile.setVisible(busy and self.starter.stage is not Stage.LOADING)
        now = self.services.pool.now
        self.picture.show_household(now, now.node.name or self.tr("This computer"))
        self.sentence.setText(self._about())
        self.note.setText("" if busy else self._note())
        self.note.setVisible(bool(self.note.text()))
        self.progress.show_progress()

    def _about(self) -> str:
        if self._is_guest:
            hosts = ", ".join(self.services.pool.now.hosts or ()) or self.tr("the household")
            return self.tr("Answers come from {hosts}. You don't need a model on this computer.").format(hosts=hosts)
        if self._shown and is_shipped(self._shown[0].item):
            return self.tr("This model came with Poolhouse, so you can chat right away. Larger ones answer better.")
        if self._shown and self._shown[0].source is not Source.DOWNLOAD:
            return self.tr("You already have a model that fits, so you don't have to download one.")
        return self.tr("Recommended for your household. You can add others later on the Models page.")

    def _note(self) -> str:
        if self._is_guest:
            return ""
        if self.models.is_measuring:
            return self.tr("Measuring how fast your computers are…")
        if not self._shown and self.models.is_known:
            return self.tr(
                "No model in the catalog fits comfortably now. Close large programs or add a computer. Until then, the "
                "small built-in Guide answers questions about Poolhouse."
            )
        return "" if self._shown else self.tr("Looking for models that fit…")

    def _fill(self) -> None:
        """Rebuild the options only if the models have changed, to preserve the keyboard focus."""
        if list(self.options) == [choice.key for choice in self._shown]:
            for choice in self._shown:
                self.options[choice.key].say(choice.title, choice.sentence, choice.figure)
            return
        clear_layout(self._list)
        self.options = {}
        chosen = self.chosen
        for choice in self._shown:
            option = Option(choice.title, choice.sentence, choice.figure)
            option.button.setChecked(chosen is not None and choice.key == chosen.key)
            option.button.clicked.connect(lambda *_, key=choice.key: self._pick(key))
            self._group.addButton(option.button)
            self.options[choice.key] = option
            self._list.addWidget(option)


def in_place(shown: Sequence[Choice], choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the choices in an order that keeps those already shown in place while the user is reading.

    Models that need no download still come first.
    """
    places = {choice.key: at for at, choice in enumerate(shown)}
    return tuple(sorted(choices, key=lambda each: (each.source is Source.DOWNLOAD, places.get(each.key, len(places)))))


class StartProgress(QWidget):
    """The progress of getting a model ready: of its download, its import, or the load on each computer."""

    def __init__(self, starter: ModelStarter) -> None:
        super().__init__()
        self._starter = starter
        self.title, self.words, self.bar = label("", "section"), paragraph("", "muted"), Progress()
        self.title.setWordWrap(True)
        self.bar.setAccessibleName(self.tr("Progress"))
        self.steps = LoadSteps(lambda: None)
        self.steps.cancel.hide()  # the page has a button for that
        self.steps.title.hide()
        self._told = Stage.IDLE
        self.setLayout(column(card(self.title, self.words, self.bar, self.steps, gap=sizes.S)))

    def show_progress(self) -> None:
        """Show the current progress."""
        starter = self._starter
        is_loading = starter.stage is Stage.LOADING
        self.title.setText(self._title())
        self.words.setText("" if is_loading else self._words())
        self.words.setVisible(bool(self.words.text()))
        self.bar.setVisible(not is_loading)
        self.steps.setVisible(is_loading)
        if is_loading:
            self.steps.show_steps(starter.title, starter.steps)
        elif starter.is_busy:
            download = starter.download
            share = of_download(download).share if download is not None else starter.imported_share
            self.bar.tell(share)
        if starter.stage is not self._told:
            self._told = starter.stage
            if starter.is_busy:
                announce(self, self.title.text())

    def _title(self) -> str:
        words = {
            Stage.DOWNLOADING: self.tr("Downloading {model}"),
            Stage.IMPORTING: self.tr("Checking {model}"),
            Stage.LOADING: self.tr("Loading {model}"),
        }.get(self._starter.stage, "")
        return words.format(model=self._starter.title)

    def _words(self) -> str:
        download = self._starter.download
        then = self.tr("It will then be loaded automatically.")
        return f"{of_download(download).words}. {then}" if download is not None else then
