"""Settings, Local API: what a single key may have, where that is not what all keys may."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication

from app.gui.api.node_client import Json
from app.gui.settings.number_field import Number
from app.gui.settings.setting_row import Setting
from app.gui.settings.settings_group import Group
from app.gui.widgets.flow import Flow

MOST_AT_ONCE, MOST_TOKENS = 32, 1_000_000_000
AS_ALL_AT_ONCE, AS_ALL_TOKENS = 0, -1  # the lowest that can be chosen: what all keys may
WIDTH = 168


class KeyLimits:
    """A row for each key, with two numbers."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.rows: dict[str, tuple[Number, Number, Setting]] = {}
        self._limited: list[str] = []  # keys with limits of their own
        self._card = group.add(title=_tr("How much a single key may have"))

    def tell(self, keys: list[str], limits: dict[str, Json]) -> None:
        """The keys there are, and what some of them may have."""
        for name in keys:
            if name not in self.rows:
                self.rows[name] = self._row(name)
                self._card.put(self.rows[name][2])
        self._limited = [name for name in keys if limits.get(name)]
        for name, (at_once, tokens, setting) in self.rows.items():
            setting.gone = name not in keys
            own = limits.get(name) or {}
            at_once.show_value(_or(own.get("at_once"), AS_ALL_AT_ONCE))
            tokens.show_value(_or(own.get("tokens_a_minute"), AS_ALL_TOKENS))
        self._group.search_again()

    def reset(self) -> None:
        """Every key may have what all may."""
        for name in self._limited:
            body = {"name": name, "at_once": None, "tokens_a_minute": None}
            self._group.ask("POST", "/api/limits", self._saved, body)

    def _row(self, name: str) -> tuple[Number, Number, Setting]:
        save = partial(self._save, name)
        at_once = Number(AS_ALL_AT_ONCE, MOST_AT_ONCE, 0, save)
        tokens = Number(AS_ALL_TOKENS, MOST_TOKENS, 0, save)
        for field, what in ((at_once, _tr("Requests at once of {key}")), (tokens, _tr("Tokens a minute of {key}"))):
            field.setSpecialValueText(_tr("as for all"))
            field.setAccessibleName(what.format(key=name))
            field.setToolTip(what.format(key=name))
            field.setMinimumWidth(self._group.services.theme.px(WIDTH))
        about = _tr("Requests at once, and tokens a minute (0: any number).")
        return at_once, tokens, Setting(name, about, Flow(at_once, tokens), words="key limit guest")

    def _save(self, name: str, _: float) -> None:
        at_once, tokens, _setting = self.rows[name]
        body = {
            "name": name,
            "at_once": int(at_once.value()) or None,
            "tokens_a_minute": None if tokens.value() < 0 else int(tokens.value()),
        }
        self._group.ask("POST", "/api/limits", self._saved, body)

    def _saved(self, told: Json) -> None:
        self.tell(told["keys"], told["limits"])


def _or(value: int | None, usual: int) -> int:
    return usual if value is None else value


def _tr(text: str) -> str:
    return QCoreApplication.translate("KeyLimits", text)
