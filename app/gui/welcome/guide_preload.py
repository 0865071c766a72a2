"""The preloading of the built-in model during the first run."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.api.plans import Plan
from app.core.planner.verdict import VerdictWord
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext
from app.gui.look.sentences import GUIDE
from app.gui.models.verdicts import of_plan
from app.gui.welcome.step import BOTH, LEND, ROLE_KEY


class GuidePreload(QObject):
    """A helper that loads the built-in model during the first run, so that the first answer starts quickly.

    Errors are not shown, because the user did not request this.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)  # its parent is the pool, because it outlives the first run
        self._services, self._pool = services, services.pool
        self._is_asked = False

    def begin(self) -> None:
        """Load the model once the node is running, unless this computer only lends."""
        if self._services.preferences.text(ROLE_KEY, BOTH) == LEND:
            self._finish()
            return
        self._pool.changed.connect(self._pool_changed)
        self._pool_changed()

    @property
    def _is_wanted(self) -> bool:
        """Return whether no model is loaded or loading, and no other host answers for this machine."""
        return not self._pool.now.models and self._pool.now.hosts is None

    def _pool_changed(self) -> None:
        if self._is_asked or not self._pool.is_there or self._pool.link is not Link.THERE:
            return
        self._is_asked = True
        if not self._is_wanted:
            self._finish()
            return
        body = {"model": GUIDE, "measure": False}
        self._services.client.post("/plan", body, self._planned, self._finish, answer=Plan)

    def _planned(self, plan: Plan) -> None:
        """Load the model if it fits with memory to spare."""
        if of_plan(plan).verdict.word is VerdictWord.FITS and self._is_wanted:
            self._services.client.post("/load", {"model": GUIDE}, self._finish, self._finish)
        else:
            self._finish()

    def _finish(self, _: object = None) -> None:
        self.deleteLater()
