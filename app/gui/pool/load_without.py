"""Loading from the Pool page: without machines that are left out, unloading, measuring speeds."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.page import Page
from app.gui.look.sentences import model_name
from app.gui.pool.load_forecast import Outlook

Json = dict[str, Any]


class ModelActions(QObject):
    """What takes time and can be stopped."""

    changed = Signal()

    def __init__(self, page: Page, outlook: Outlook) -> None:
        super().__init__(page)
        self._page, self._outlook = page, outlook
        self._load: Call | None = None
        self._measure: Call | None = None
        self._short: Call | None = None

    @property
    def measuring(self) -> bool:
        return self._measure is not None

    @property
    def is_ours(self) -> bool:
        """Whether this page waits for what it began itself: that ends with it."""
        return self._load is not None or self.measuring

    def load_without(self) -> None:
        """The model of the forecast, without the machines that are left out."""
        self._begin({"model": self._outlook.model, "without": sorted(self._outlook.without)})

    def cancel(self) -> None:
        """End a load that is under way, whoever began it."""
        self._short = self._page.services.client.post("/unload", self._loaded_one(), lambda _: None, self._page.fail)

    def unload(self) -> None:
        self._short = self._page.services.client.post("/unload", self._loaded_one(), self._unloaded, self._page.fail)

    def again(self) -> None:
        """What was lost."""
        self._begin({"model": self._outlook.model})

    def measure(self) -> None:
        """How fast every machine is with the model: some seconds on each."""
        if self._measure is not None:
            return
        body = {"model": self._outlook.model, "measure": True}
        self._measure = self._page.services.client.post("/plan", body, self._measured, self._not_measured)
        self.changed.emit()

    def stop(self) -> None:
        """Hear of nothing any more."""
        for call in (self._load, self._measure, self._short):
            if call is not None:
                call.cancel()

    def _begin(self, body: Json) -> None:
        self._page.notice.clear()
        self._load = self._page.services.client.post("/load", body, self._loaded, self._not_loaded)

    def _loaded(self, _: Json) -> None:
        self._load = None
        self._outlook.take_all_back()

    def _not_loaded(self, error: AppError) -> None:
        self._load = None
        if error.reason.code != "load_stopped":
            self._page.fail(error)

    def _loaded_one(self) -> Json:
        """What this page shows as loaded; a model of vectors beside it stays."""
        model = (self._page.services.pool.loaded or {}).get("model")
        return {"model": model} if model else {}

    def _unloaded(self, answer: Json) -> None:
        name = str(answer.get("unloaded") or "")
        if name:
            text = self.tr("{model} is unloaded; its memory is free again.")
            text = text.format(model=model_name(name))
            again = (self.tr("Load it again"), lambda: self._begin({"model": name}))
            self._page.notice.say(text, "info", again)

    def _measured(self, _: Json) -> None:
        self._measure = None
        self._outlook.forget()
        self.changed.emit()

    def _not_measured(self, error: AppError) -> None:
        self._measure = None
        self._page.fail(error)
        self.changed.emit()
