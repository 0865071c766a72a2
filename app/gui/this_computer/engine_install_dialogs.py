"""The dialogs and the progress row for installing PyTorch or MLX."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.api.engine_packs import AvailableEngine, EngineInstallation
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column, layout_widget
from app.gui.widgets.progress import Progress


class InstallEngineDialog(Sheet):
    """A dialog that says what an engine takes before it is installed. `agree` is called with its name."""

    def __init__(
        self, services: AppContext, engine: AvailableEngine, agree: Callable[[str], object], parent: QWidget
    ) -> None:
        title = _tr("Install {engine}").format(engine=engine.label)
        sentence = _tr("{engine} is a download of {size}, and takes {disk} on the disk.")
        amounts = {"size": formats.size(engine.download_bytes), "disk": formats.size(engine.installed_bytes)}
        super().__init__(services, title, sentence.format(engine=engine.label, **amounts), parent)
        self._engine, self._agree = engine.engine, agree
        if engine.advice_facts is not None:
            self.add(paragraph(said(engine.advice_facts)))
        later = _tr(
            "It comes from the public index of Python packages, and only the files that this version of "
            "Poolhouse knows are accepted. It is tested first. Then it computes the models that it can, and llama.cpp "
            "the others."
        )
        self.add(paragraph(later, "muted"))
        self.act = button(_tr("Install and use"), self._agreed, "primary")
        self.offer(_tr("Cancel"), self.act)

    def _agreed(self) -> None:
        self.accept()
        self._agree(self._engine)


class DeleteEngineDialog(Sheet):
    """A confirmation dialog for deleting an engine. `agree` is called with its name."""

    def __init__(
        self, services: AppContext, engine: AvailableEngine, agree: Callable[[str], object], parent: QWidget
    ) -> None:
        title = _tr("Delete {engine}").format(engine=engine.label)
        sentence = _tr("This frees {size}. llama.cpp then computes what {engine} would have computed.")
        text = sentence.format(size=formats.size(engine.installed_bytes), engine=engine.label)
        super().__init__(services, title, text, parent)
        self._engine, self._agree = engine.engine, agree
        self.act = button(_tr("Delete"), self._agreed, "danger")
        self.offer(_tr("Cancel"), self.act)

    def _agreed(self) -> None:
        self.accept()
        self._agree(self._engine)


class InstallationRow(QWidget):
    """A row with the progress of an installation and a Cancel button."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__()
        self.words = paragraph()
        self.bar = Progress(_tr("Installation of an engine"))
        self.cancel = button(_tr("Cancel"), cancel)
        self.cancel.setAccessibleName(_tr("Cancel the installation of the engine"))
        self.setLayout(column(self.words, self.bar, layout_widget(Flow(self.cancel)), gap=sizes.XS))
        self.hide()

    def show_installation(self, installation: EngineInstallation | None) -> None:
        """Show the progress of an installation. Hide the row when it has ended."""
        if installation is None or installation.is_over:
            self.hide()
            return
        self.words.setText(installation_progress(installation))
        is_known = installation.state == "downloading" and installation.total_bytes > 0
        self.bar.tell(installation.done_bytes / installation.total_bytes if is_known else None)
        self.show()


def installation_progress(installation: EngineInstallation) -> str:
    """Describe the current step of an installation."""
    if installation.state == "testing":
        return _tr("Testing the engine…")
    if installation.state == "unpacking":
        return _tr("Unpacking {engine}…").format(engine=installation.label)
    words = _tr("Downloading {engine}: {done} of {total}")
    done, total = formats.size(installation.done_bytes), formats.size(installation.total_bytes)
    return words.format(engine=installation.label, done=done, total=total)


def installation_outcome(installation: EngineInstallation) -> tuple[str, str]:
    """Return a text about how an installation ended, and the role of that text."""
    if installation.problem_facts is not None:
        return said(installation.problem_facts), "error"
    if installation.state == "canceled":
        return _tr("The installation was canceled."), "muted"
    return _tr("{engine} is installed.").format(engine=installation.label), "muted"


def _tr(text: str) -> str:
    return QCoreApplication.translate("AddedEngineCard", text)
