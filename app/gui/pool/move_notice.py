"""The notice that layers of a loaded model moved by themselves, with the reason and a button to move them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.api.plans import LoadedModel, Move
from app.gui.look import formats
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import Theme
from app.gui.widgets.notice import Notice


class MoveNotice(Notice):
    """The notice about the latest move of any loaded model, until the user closes it.

    `undo(model)` is called when the user wants the layers back where they were.
    """

    def __init__(self, theme: Theme, undo: Callable[[str], object]) -> None:
        super().__init__(theme, close=self._dismiss)
        self._undo = undo
        self._shown: tuple[str, Move] | None = None
        self._dismissed_at = 0.0

    def show_moves(self, models: Sequence[LoadedModel]) -> None:
        """Show the latest move of these models, unless the user has closed its notice."""
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
            return f"{when} {self.tr('The layers are moving back. They stay there until you load the model again.')}"
        return " ".join(filter(None, (when, said(move.text_facts), said(move.problem_facts))))

    def _dismiss(self) -> None:
        if self._shown is not None:
            self._dismissed_at = self._shown[1].at
        self._shown = None
        self.clear()
