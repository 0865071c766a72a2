"""The offer to import models that other apps have stored on this computer. They are used in place, not downloaded."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.api.models import FoundFile, FoundFiles
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.models.transfers import checking_words
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row

MAX_NAMES = 3


class OtherModels(QObject):
    """A helper that finds the models of other apps and imports them. All steps of the first run share one instance."""

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._pool, self._importing = (services.client, services.pool, services.importing)
        self._call: Call | None = None
        self._is_requested = self._has_looked = False
        self.models: list[FoundFile] = []  # all models that can be imported, largest first
        self.imported: list[FoundFile] = []  # models that were imported
        self.problem = ""  # the error of the last failed import, in words
        self._pool.link_changed.connect(self._search)
        self._importing.changed.connect(self.changed)
        self._importing.ended.connect(self._ended)

    def search(self) -> None:
        """Search once the node is running. The search takes a few seconds. If it fails, no models are offered."""
        self._is_requested = True
        self._search()

    @property
    def remaining(self) -> list[FoundFile]:
        """The models that can be imported but have not been."""
        return [model for model in self.models if model not in self.imported]

    @property
    def is_busy(self) -> bool:
        """Return whether any of these models is queued or being imported."""
        return bool(self._paths & set(self._importing.paths))

    @property
    def progress(self) -> tuple[str, str]:
        """The name of the file being imported, and a text about the progress."""
        return self._importing.name, checking_words(self._importing)

    def import_all(self) -> None:
        """Import all remaining models. Each file is read once, then used in place."""
        self.problem = ""
        for model in self.remaining:
            self._importing.add(model.path, model.name)

    def stop(self) -> None:
        """Cancel the remaining imports. Imported models stay in the library."""
        self._importing.cancel_paths(self._paths)

    @property
    def _paths(self) -> set[str]:
        return {model.path for model in self.models}

    def _search(self) -> None:
        asks = self._is_requested and not self._has_looked and self._call is None
        if asks and self._pool.link is Link.THERE:
            self._call = self._client.get("/found", self._found, self._none, answer=FoundFiles)

    def _found(self, answer: FoundFiles) -> None:
        self._call, self._has_looked = None, True
        self.models = usable(answer.files)
        self.changed.emit()

    def _none(self, _: AppError) -> None:
        self._call = None

    def _ended(self, path: str, error: AppError | None) -> None:
        ours = next((model for model in self.models if model.path == path), None)
        if ours is None:
            return
        if error is None:
            self.imported.append(ours)
        else:
            self.problem = said(error)
        self.changed.emit()


def usable(files: Sequence[FoundFile]) -> list[FoundFile]:
    """Return the files that can be imported but have not been, largest first."""
    models = [file for file in files if file.usable and not file.on_shelf]
    return sorted(models, key=lambda model: -model.size_bytes)


class OtherModelsCard(QWidget):
    """A card that offers other apps' models, hidden if there are none. `is_last` adds a link to the Models page."""

    page_requested = Signal()  # the user asked for the Models page

    def __init__(self, other_models: OtherModels, *, is_last: bool = False) -> None:
        super().__init__()
        self._other_models, self._is_last, self._was_busy = other_models, is_last, False
        self.about, self.names = paragraph(""), paragraph("", "caption")
        self.problem = paragraph("", "warning")
        self.take, self.stop = button("", other_models.import_all), button(self.tr("Stop"), other_models.stop)
        self.show_them = button(self.tr("Show on the Models page"), self.page_requested.emit)
        inner = card(
            label(self.tr("Already on this computer"), "section"),
            self.about,
            self.names,
            self.problem,
            row(self.take, self.stop, self.show_them, None),
            gap=sizes.S,
        )
        self.setLayout(column(inner))
        other_models.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        """Show the offered models, the progress of the import, or its result."""
        other_models = self._other_models
        left, is_busy = other_models.remaining, other_models.is_busy
        self.setVisible(bool(other_models.models))
        self.about.setText(self._progress_text() if is_busy else self._offer_text() if left else self._done_text())
        names = [model.name for model in left or other_models.models]
        self.names.setText(", ".join(names[:MAX_NAMES]) + ("…" if len(names) > MAX_NAMES else ""))
        self.problem.setText(other_models.problem)
        self.problem.setVisible(bool(other_models.problem))
        self.take.setText(self.tr("Use %n model(s)", "", len(left)))
        if is_busy:  # shown before the other button is hidden, so that the keyboard focus moves to it
            self.stop.show()
        self.take.setVisible(bool(left) and not is_busy)
        self.stop.setVisible(is_busy)
        self.show_them.setVisible(self._is_last and not is_busy)
        if self._was_busy and not is_busy and self.isVisible():
            announce(self, other_models.problem or self.about.text())
        self._was_busy = is_busy

    def _offer_text(self) -> str:
        left = self._other_models.remaining
        apps = ", ".join(dict.fromkeys(model.app for model in left))
        text = self.tr(
            "You can use %n model(s) ({size}) from {apps} in place, without a download. Each file is read once to "
            "check it.",
            "",
            len(left),
        )
        size = formats.size(sum(model.size_bytes for model in left))
        return text.format(apps=apps, size=size)

    def _progress_text(self) -> str:
        name, how_far = self._other_models.progress
        text = self.tr("{name}: {how_far}. You can continue in the meantime.")
        return text.format(name=name, how_far=how_far)

    def _done_text(self) -> str:
        return self.tr("You can load %n model(s) on the Models page.", "", len(self._other_models.imported))
