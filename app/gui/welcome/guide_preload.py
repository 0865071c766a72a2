"""The built-in model is loaded while the first steps are gone through, so that the first answer waits for no load."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.core.planner.verdict import Word
from app.gui.api.node_client import Json
from app.gui.api.node_state import Link
from app.gui.app.app_context import Services
from app.gui.look.sentences import GUIDE
from app.gui.models.verdicts import of_plan
from app.gui.welcome.role_step import BOTH, KEY, LEND


class GuideAhead(QObject):
    """Nobody asked for it: where anything speaks against it, nothing is loaded, and nothing is said."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.pool)  # the first steps are gone before it is through
        self._services, self._pool = services, services.pool
        self._is_asked = False

    def begin(self) -> None:
        """As soon as a node is there. Who only lends answers nothing here."""
        if self._services.preferences.text(KEY, BOTH) == LEND:
            self._over()
            return
        self._pool.changed.connect(self._look)
        self._look()

    @property
    def _is_wanted(self) -> bool:
        """Nothing is loaded or on its way, and no host answers in its place."""
        return not self._pool.models and self._pool.hosts is None

    def _look(self) -> None:
        if self._is_asked or not self._pool.is_there or self._pool.link is not Link.THERE:
            return
        self._is_asked = True
        if not self._is_wanted:
            self._over()
            return
        body = {"model": GUIDE, "measure": False}
        self._services.client.post("/plan", body, self._planned, self._over)

    def _planned(self, plan: Json) -> None:
        """Only where memory is left beside it."""
        if of_plan(plan).verdict.word is Word.FITS and self._is_wanted:
            self._services.client.post("/load", {"model": GUIDE}, self._over, self._over)
        else:
            self._over()

    def _over(self, _: object = None) -> None:
        self.deleteLater()
