"""The Local API settings, for the API that other programs use, its address, its keys and their limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLayout, QLineEdit, QPushButton

from app.api import chat_api
from app.api.chat_api import ApiKeys, Certificate, ChatApi
from app.gui.app.app_context import AppContext
from app.gui.settings.settings_group import Card, NumberField, Setting, SettingsGroup
from app.gui.settings.upstreams import UpstreamRows
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label

FIRST_KEY, USUAL_PORT = "default", 47114
LEAST_PORT, MOST_PORT = 1024, 65535
MOST_AT_ONCE, MOST_TOKENS = 32, 1_000_000_000
AS_ALL_AT_ONCE, AS_ALL_TOKENS = 0, -1  # minimum values of the fields, which mean that the general limits apply
OFFERED_HOST = "host.docker.internal"  # the name by which Docker Desktop containers reach this computer
MOST_CHARACTERS = 300  # maximum length of a host name or an origin
LIMIT_WIDTH, NAME_WIDTH, KEY_WIDTH, PORT_WIDTH = 168, 220, 220, 120
SEARCHED = "allow docker container open webui browser cors origin host name"
Change = Callable[[list[str], list[str]], None]  # names to add, names to remove


class KeyLimitRows:
    """The rows for the limits of individual API keys. Each key has one row with two fields."""

    def __init__(self, group: SettingsGroup) -> None:
        self._group = group
        self.rows: dict[str, tuple[NumberField, NumberField, Setting]] = {}
        self._limited: list[str] = []  # keys that have their own limits
        self._card = group.add(title=_tr("Limits for individual keys"))

    def show_limits(self, keys: list[str], limits: dict[str, chat_api.KeyLimits]) -> None:
        """Show these keys, with limits for those that have their own."""
        for name in keys:
            if name not in self.rows:
                self.rows[name] = self._row(name)
                self._card.put(self.rows[name][2])
        self._limited = [name for name in keys if name in limits]
        for name, (at_once, tokens, setting) in self.rows.items():
            setting.is_removed = name not in keys
            own = limits.get(name, chat_api.KeyLimits())
            at_once.show_value(AS_ALL_AT_ONCE if own.at_once is None else own.at_once)
            tokens.show_value(AS_ALL_TOKENS if own.tokens_a_minute is None else own.tokens_a_minute)
        self._group.search_again()

    def reset(self) -> None:
        """Remove the limits of individual keys, so that only the general limits apply."""
        for name in self._limited:
            body = {"name": name, "at_once": None, "tokens_a_minute": None}
            self._group.ask("POST", "/api/limits", self._saved, body, answer=ChatApi)

    def _row(self, name: str) -> tuple[NumberField, NumberField, Setting]:
        save = partial(self._save, name)
        at_once = NumberField(AS_ALL_AT_ONCE, MOST_AT_ONCE, 0, save)
        tokens = NumberField(AS_ALL_TOKENS, MOST_TOKENS, 0, save)
        for field, title in (
            (at_once, _tr("Simultaneous requests for {key}")),
            (tokens, _tr("Tokens per minute for {key}")),
        ):
            field.setSpecialValueText(_tr("same as other keys"))
            field.setAccessibleName(title.format(key=name))
            field.setToolTip(title.format(key=name))
            field.setMinimumWidth(self._group.services.theme.px(LIMIT_WIDTH))
        about = _tr("Simultaneous requests and tokens per minute (0 means no limit).")
        return at_once, tokens, Setting(name, about, Flow(at_once, tokens), words="key limit guest")

    def _save(self, name: str, _: float) -> None:
        at_once, tokens, _setting = self.rows[name]
        body = {
            "name": name,
            "at_once": int(at_once.value()) or None,
            "tokens_a_minute": None if tokens.value() < 0 else int(tokens.value()),
        }
        self._group.ask("POST", "/api/limits", self._saved, body, answer=ChatApi)

    def _saved(self, api: ChatApi) -> None:
        self.show_limits(api.keys, api.limits)


class AllowedNames:
    """A list of allowed names, with a field to add a name and a Remove button for each."""

    def __init__(self, group: SettingsGroup, card: Card, title: str, about: str, change: Change) -> None:
        self._group, self._card, self._change = group, card, change
        self.edit = QLineEdit()
        self.edit.setMaxLength(MOST_CHARACTERS)
        self.edit.setFixedWidth(group.services.theme.px(NAME_WIDTH))
        self.edit.setAccessibleName(title)
        self.allow = button(_tr("Allow"), self._allow_typed)
        self.allow.setAccessibleName(_tr("Allow: {what}").format(what=title))
        self.allow.setEnabled(False)
        self.edit.returnPressed.connect(self._allow_typed)
        self.edit.textChanged.connect(lambda text: self.allow.setEnabled(bool(text.strip())))
        row = Flow(self.edit, self.allow)
        card.put(Setting(title, about, row, default=_tr("Default: none"), words=SEARCHED))
        self.names: list[str] = []
        self.removals: dict[str, QPushButton] = {}
        self._rows: dict[str, Setting] = {}

    def show_names(self, names: list[str]) -> None:
        """Show the allowed names."""
        if set(names) - set(self.names):  # the typed name has been accepted
            self.edit.clear()
        self.names = list(names)
        for name in names:
            if name not in self._rows:
                self._rows[name] = self._row(name)
                self._card.put(self._rows[name])
        for name, setting in self._rows.items():
            setting.is_removed = name not in names

    def _allow_typed(self) -> None:
        if text := self.edit.text().strip():
            self._change([text], [])

    def _row(self, name: str) -> Setting:
        remove = self.removals[name] = button(_tr("Remove"), partial(self._change, [], [name]))
        remove.setAccessibleName(_tr("Remove {name}").format(name=name))
        return Setting(name, "", remove, words=SEARCHED)


class AccessLists:
    """The lists of allowed host names and web origins.

    `save` is called with only the changes. `show_lists` displays the node's response.
    """

    def __init__(self, group: SettingsGroup, save: Callable[[dict[str, object]], None]) -> None:
        self._group, self._save = group, save
        hosts = group.add(title=_tr("Host names"))
        self.hosts = AllowedNames(
            group,
            hosts,
            _tr("Also accept these host names"),
            _tr(
                "Containers and proxies may use other names for this computer. Only allow names you know, because a "
                "website that uses an allowed name can reach the API."
            ),
            partial(self._change, "host_names"),
        )
        self.offer = button(_tr("Allow"), self._allow_offered)
        self.offer.setAccessibleName(_tr("Allow: {what}").format(what=OFFERED_HOST))
        about = _tr("Docker Desktop containers use this name for this computer.")
        self.offered = Setting(OFFERED_HOST, about, self.offer, words=SEARCHED)
        hosts.put(self.offered)
        origins = group.add(title=_tr("Web pages and apps"))
        self.origins = AllowedNames(
            group,
            origins,
            _tr("Let web pages from these origins use the API"),
            _tr(
                "For example, http://localhost:3000 or app://obsidian.md. These pages can send requests with a key "
                "and read the answers. They can use the Ollama API without a key if you allow that above."
            ),
            partial(self._change, "origins"),
        )

    def show_lists(self, api: ChatApi) -> None:
        self.hosts.show_names(api.host_names)
        self.origins.show_names(api.origins)
        self.offered.is_removed = OFFERED_HOST in api.host_names
        self._group.search_again()

    def removal_request(self) -> dict[str, object]:
        """Return the request fields that remove all names."""
        return {"remove_host_names": self.hosts.names, "remove_origins": self.origins.names}

    def _allow_offered(self) -> None:
        self._change("host_names", [OFFERED_HOST], [])

    def _change(self, field: str, added: list[str], removed: list[str]) -> None:
        self._save({f"add_{field}": added, f"remove_{field}": removed})


class LocalApi(SettingsGroup):
    """The Local API settings. They take effect immediately and are stored by the node."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Local API"))
        self.on = self._switch(self.tr("Other programs may use the pool"), "on")
        self.address = label()
        self._listens = False
        self.key = QLineEdit()
        self.key.setReadOnly(True)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setMaximumWidth(services.theme.px(KEY_WIDTH))
        self.key.setAccessibleName(self.tr("API key"))
        self.show_key = button(self.tr("Show"), self._show_key)
        self.show_key.setAccessibleName(self.tr("Show the key"))
        self.port = NumberField(LEAST_PORT, MOST_PORT, 0, lambda port: self._save({"port": int(port)}))
        self.port.setGroupSeparatorShown(False)
        self.port.setFixedWidth(services.theme.px(PORT_WIDTH))
        self.may_load = self._switch(self.tr("Let programs load other models"), "may_load")
        self.ollama_open = self._switch(self.tr("Ollama apps need no key"), "ollama_open")
        self.lan = self._switch(self.tr("Other computers may use it too"), "lan")
        self.at_once = self._number(1, MOST_AT_ONCE, "at_once")
        self.tokens = self._number(0, MOST_TOKENS, "tokens_a_minute")
        self._add_door()
        self._add_rights()
        self._add_reach()
        self.access = AccessLists(self, self._save)
        self._add_limits()
        self.key_limits = KeyLimitRows(self)
        self.upstreams = UpstreamRows(self)

    def refresh(self) -> None:
        self.ask("GET", "/api", self._tell, answer=ChatApi)

    def reset(self) -> None:
        self._save(
            {"on": False, "port": USUAL_PORT, "may_load": False, "ollama_open": False, "lan": False,
             "at_once": MOST_AT_ONCE, "tokens_a_minute": 0} | self.access.removal_request()
        )  # fmt: skip
        self.key_limits.reset()
        self.upstreams.reset()

    def reset_words(self) -> str:
        kept = self.tr("Your API keys and other servers are kept, but the servers are turned off.")
        return f"{super().reset_words()} {kept}"

    def _switch(self, name: str, field: str) -> Switch:
        return Switch(self.services.theme, name, lambda on: self._save({field: on}))

    def _number(self, least: int, most: int, field: str) -> NumberField:
        made = NumberField(least, most, 0, lambda value: self._save({field: int(value)}))
        made.setFixedWidth(self.services.theme.px(PORT_WIDTH))
        return made

    def _add_door(self) -> None:
        copy_address = button(self.tr("Copy"), self._copy_address)
        copy_address.setAccessibleName(self.tr("Copy the API address"))
        self._where = Setting(
            self.tr("Address"), "", Flow(self.address, copy_address), words="url openai anthropic ollama"
        )
        self._key = Setting(self.tr("Key"), "", self._key_row(), wide=True, words="token openai")
        self.add(
            Setting(
                self.tr("Other programs may use the pool"),
                self.tr(
                    "Editors, agents and scripts on this computer can use the pool as they would use "
                    "OpenAI, Anthropic or Ollama."
                ),
                self.on,
                default=self.tr("Default: off"),
                words="api openai anthropic ollama server",
            ),
            self._where,
            self._key,
            Setting(
                self.tr("Port"),
                self.tr("Programs connect to this port."),
                self.port,
                default=self.tr("Default: 47114, or the next free port"),
            ),
        )

    def _add_rights(self) -> None:
        self.add(
            Setting(
                self.tr("Let programs load other models"),
                self.tr(
                    "When a program asks for another model, Poolhouse unloads the current one and loads the "
                    "requested one."
                ),
                self.may_load,
                default=self.tr("Default: off"),
            ),
            Setting(
                self.tr("Ollama apps need no key"),
                self.tr(
                    "Most Ollama apps can't send a key. This lets any program on this computer connect without one."
                ),
                self.ollama_open,
                default=self.tr("Default: off"),
            ),
            title=self.tr("Permissions for programs"),
        )

    def _add_reach(self) -> None:
        self._reach = Setting(
            self.tr("Other computers may use it too"),
            "",
            self.lan,
            default=self.tr("Default: off"),
            words="lan network tls guest",
        )
        copy = button(self.tr("Copy"), self._copy_certificate)
        copy.setAccessibleName(self.tr("Copy the API certificate"))
        self._trust = Setting(
            self.tr("Certificate"),
            self.tr("Programs on other computers must trust this certificate."),
            Flow(copy),
            words="pem",
        )
        self.add(self._reach, self._trust, title=self.tr("From other computers"))

    def _add_limits(self) -> None:
        self.add(
            Setting(
                self.tr("Simultaneous requests"),
                self.tr("The limit applies to each key. Programs that send more are told to try again later."),
                self.at_once,
                default=self.tr("Default: 32"),
                words="limit",
            ),
            Setting(
                self.tr("Tokens per minute"),
                self.tr("The limit applies to each key and includes prompts. 0 means no limit."),
                self.tokens,
                default=self.tr("Default: no limit"),
                words="limit",
            ),
            title=self.tr("Limits for each program"),
        )

    def _key_row(self) -> QLayout:
        copy = button(self.tr("Copy"), self._copy_key)
        copy.setAccessibleName(self.tr("Copy the key"))
        new = button(self.tr("New key"), self._new_key)
        new.setAccessibleName(self.tr("Create a new API key"))
        return Flow(self.key, self.show_key, copy, new)

    def _tell(self, api: ChatApi) -> None:
        self.on.show_on(api.on)
        self.may_load.show_on(api.may_load)
        self.ollama_open.show_on(api.ollama_open)
        self.lan.show_on(api.lan)
        self.port.show_value(api.port)
        self.at_once.show_value(api.at_once)
        self.tokens.show_value(api.tokens_a_minute)
        self._tell_reach(api.lan_addresses, is_open=api.lan)
        self.access.show_lists(api)
        self.upstreams.show_servers(api.upstreams)
        self.key_limits.show_limits(api.keys, api.limits)
        self._listens = api.listening
        self._where.setEnabled(api.listening)
        self._key.setEnabled(api.listening)
        self.address.setText(api.address or self.tr("Off"))
        moved = api.listening and api.listens_at != api.port
        words = self.tr("Another program is using port {port}, so the next free port is used for now.")
        self._where.set_about(words.format(port=api.port) if moved else "")
        if api.listening:
            self.ask("GET", "/api/keys", self._tell_keys, answer=ApiKeys)
        else:
            self.key.clear()

    def _tell_reach(self, lan_addresses: list[str], *, is_open: bool) -> None:
        """Show the addresses at which programs on other computers reach the API, if it is open to them.

        is_open: whether programs on other computers may use the API. Otherwise, the addresses are only for phones.
        """
        there = ", ".join(lan_addresses) if is_open else ""
        open_to = self.tr(
            "Available on this network at {there}. Requires TLS and a key. Nothing else on this computer is exposed."
        )
        closed = self.tr("Requires TLS and a key that you provide. Nothing else on this computer is exposed.")
        self._reach.set_about(open_to.format(there=there) if there else closed)
        self._trust.setEnabled(bool(there))

    def _tell_keys(self, answer: ApiKeys) -> None:
        if not self._listens:  # the API was turned off in the meantime
            return
        keys = {key.name: key.key for key in answer.keys}
        self.key.setText(keys.get(FIRST_KEY) or next(iter(keys.values()), ""))
        self.key.setCursorPosition(0)

    def _save(self, changes: dict[str, object]) -> None:
        self.ask("POST", "/api", self._tell, changes, answer=ChatApi)

    def _show_key(self) -> None:
        hidden = self.key.echoMode() is QLineEdit.EchoMode.Password
        self.key.setEchoMode(QLineEdit.EchoMode.Normal if hidden else QLineEdit.EchoMode.Password)
        self.show_key.setText(self.tr("Hide") if hidden else self.tr("Show"))
        self.show_key.setAccessibleName(self.tr("Hide the key") if hidden else self.tr("Show the key"))

    def _copy_address(self) -> None:
        QGuiApplication.clipboard().setText(self.address.text())
        self.told.emit(self.tr("Address copied."), "info")

    def _copy_certificate(self) -> None:
        self.ask("GET", "/api/certificate", self._copied_certificate, answer=Certificate)

    def _copied_certificate(self, answer: Certificate) -> None:
        QGuiApplication.clipboard().setText(answer.certificate or "")
        self.told.emit(self.tr("Certificate copied."), "info")

    def _copy_key(self) -> None:
        QGuiApplication.clipboard().setText(self.key.text())
        self.told.emit(self.tr("Key copied."), "info")

    def _new_key(self) -> None:
        self.ask("POST", "/api/keys", self._made_key, {"name": FIRST_KEY}, answer=chat_api.ApiKey)

    def _made_key(self, answer: chat_api.ApiKey) -> None:
        self.key.setText(answer.key)
        self.told.emit(self.tr("New key created. The old one no longer works."), "info")


def _tr(text: str) -> str:
    return QCoreApplication.translate("LocalApi", text)
