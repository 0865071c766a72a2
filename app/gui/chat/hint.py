"""One line above the composer: what sending will do, where that is not plain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from app.core.chat import Chat
from app.gui.api.node_state import NodeState
from app.gui.app.preferences import Preferences
from app.gui.look import theme as sizes
from app.gui.look.language import is_english
from app.gui.look.sentences import GUIDE, model_name
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import paragraph

LAST_MODEL = "chat/last_model"  # that answered and is not the Guide


class Hint(QWidget):
    """`use(model)` when the model that answered last is wanted again, or the Guide where none answers."""

    def __init__(self, preferences: Preferences, use: Callable[[str], object]) -> None:
        super().__init__()
        self._preferences = preferences
        self.words = paragraph("", "caption")
        self._offered = ""
        self.other = button("", lambda: use(self._offered), "link")
        self.setLayout(Beside(self.words, self.other, gap=sizes.S))

    @property
    def last(self) -> str:
        return self._preferences.text(LAST_MODEL)

    def answered(self, model: str | None) -> None:
        """This model answered just now."""
        if model and model not in (GUIDE, self.last):
            self._preferences.keep(LAST_MODEL, model)

    def tell(
        self,
        chat: Chat,
        models: Sequence[str],
        pool: NodeState,
        *,
        is_full: bool,
        leaves_out: bool = False,
        waits: bool = False,
        guide_fails: bool = False,
    ) -> None:
        """About the next message of this chat.

        waits: it was sent while an answer comes; guide_fails: that was asked here, and does not fit.
        """
        words, other, self._offered = "", "", self.last
        is_loaded = pool.loaded is not None or pool.hosts is not None or not pool.is_there
        speaker = (pool.model(chat.model) or pool.loaded or {}).get("model")
        by_guide = pool.hosts is None and (chat.model or speaker or GUIDE) == GUIDE
        failed = pool.load_failed if chat.model is None and pool.hosts is None else ""
        only_english = ""
        if by_guide and not failed and chat.messages and not is_english():  # an empty chat says it at length
            only_english = self.tr("The Guide understands English only.")
        if waits:
            words = self.tr("Your message goes as soon as this answer has ended.")
        elif is_full and leaves_out:
            words = self.tr("The context is nearly full: the oldest messages are left out from now on.")
        elif is_full:
            words = self.tr("The context is nearly full: the next answer may stop early.")
        elif not is_loaded and failed:
            if chat.messages:  # an empty chat says it at length
                text = self.tr("{model} could not be loaded, so no model answers.")
                words = text.format(model=model_name(failed))
                other, self._offered = self.tr("Ask the Guide"), GUIDE
        elif not is_loaded and chat.model is None and guide_fails:
            words = self.tr("No model is loaded, and the Guide does not fit either.")
        elif not is_loaded and chat.model is None:
            words = f"{self.tr('No model is loaded, so the Guide answers.')} {only_english}".strip()
            if self.last in models:
                other = self.tr("Use {model}").format(model=self.last)
        else:
            words = only_english
        self.words.setText(words)
        self.other.setText(other)
        self.other.setVisible(bool(other))
        self.setVisible(bool(words))
