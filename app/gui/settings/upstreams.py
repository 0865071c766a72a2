"""The Local API settings for other servers that can answer requests, and dialogs that add or remove servers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton, QWidget

from app.api.chat_api import MOST_MEASURED_TOKENS, Upstream, UpstreamMeasured, Upstreams, UpstreamSpeed, UpstreamTest
from app.core.errors import AppError, BadInput
from app.gui.api.node_client import Call, segment
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats
from app.gui.pool.machine_words import moment
from app.gui.settings.settings_group import NumberField, Setting, SettingsGroup
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column

ServersChanged = Callable[[Upstreams, str], object]  # receives the current servers, and the name of the changed one
MOST_TOKENS, USUAL_TOKENS = 1_000_000_000_000, 1_000_000
MOST_CERTIFICATE_BYTES = 1 << 14


class AddServerDialog(Sheet):
    """A dialog that adds a server. Its API key is sent to the node once and never shown again."""

    def __init__(self, services: AppContext, known: Collection[str], done: ServersChanged, parent: QWidget) -> None:
        """Create the dialog.

        known: the names that are already taken.
        """
        sentence = _tr(
            "An OpenAI-compatible server that answers when the pool is full or doesn't have the model. It stays off "
            "until you turn it on. Requests sent to it leave your household."
        )
        super().__init__(services, _tr("Add another server"), sentence, parent)
        self._known, self._done, self._certificate = known, done, ""
        self._adding: Call | None = None
        self.name, self.url, self.models, self.key = (QLineEdit() for _ in range(4))
        self.name.setMaxLength(32)
        self.url.setPlaceholderText("https://…/v1")
        self.models.setPlaceholderText(_tr("model, or model=name on the server"))
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setMaxLength(1000)
        self.cap = NumberField(1, MOST_TOKENS, 0, lambda _: None)
        self.cap.show_value(USUAL_TOKENS)
        for title, field in (
            (_tr("Name of the server"), self.name),
            (_tr("Address that ends in /v1"), self.url),
            (_tr("Models it may provide"), self.models),
            (_tr("Total token limit"), self.cap),
            (_tr("Key"), self.key),
        ):
            words = label(title, "muted")
            words.setBuddy(field)
            field.setAccessibleName(title)
            self.add(column(words, field, gap=2))
        self.trusted = paragraph(_tr("Uses the certificates this computer trusts."), "muted")
        choose = button(_tr("Choose a certificate…"), self._choose)
        self.add(column(self.trusted, Flow(choose)))
        self.act = button(_tr("Add and test"), self.save, "primary")
        self.offer(_tr("Cancel"), self.act)
        for field in (self.name, self.url, self.models):
            field.textChanged.connect(self._judge)
        self._judge()

    def save(self) -> None:
        name = self.name.text().strip()
        if name in self._known:
            words = _tr("There is already a server called {name}. Choose another name for this one.")
            self.notice.say(words.format(name=name), "error", closable=False)
            self.fit()
            return
        self.act.setEnabled(False)
        self.notice.clear()
        pairs = [pair.partition("=") for pair in self.models.text().split(",") if pair.strip()]
        body = {
            "name": name,
            "url": self.url.text().strip(),
            "models": {here.strip(): (there or here).strip() for here, _, there in pairs},
            "cap_tokens": int(self.cap.value()),
            "key": self.key.text(),
            "certificate": self._certificate,
        }
        client = self.services.client
        done = partial(self._added, name)
        self._adding = client.post("/api/upstreams", body, done, self._refused, answer=Upstreams)
        self.keep(self._adding)

    def _judge(self) -> None:
        required = (self.name, self.url, self.models)
        busy = self._adding is not None and self._adding.running
        self.act.setEnabled(not busy and all(field.text().strip() for field in required))

    def _added(self, name: str, answer: Upstreams) -> None:
        self.key.clear()
        self._done(answer, name)
        self.accept()

    def _refused(self, error: AppError) -> None:
        self._judge()
        self.fail(error)

    def _choose(self) -> None:
        last = LastFolder(self.services.preferences, "certificate")
        title = _tr("Choose a certificate…")
        chosen, _ = QFileDialog.getOpenFileName(self, title, last.folder())
        if chosen:
            last.keep(Path(chosen))
            self.trust(Path(chosen))

    def trust(self, file: Path) -> None:
        """Accept only the certificate in this file for connections to the server."""
        try:
            with file.open("rb") as opened:
                data = opened.read(MOST_CERTIFICATE_BYTES + 1)
            if len(data) > MOST_CERTIFICATE_BYTES:
                raise ValueError("no certificate is as long")
            self._certificate = data.decode("ascii")
        except (OSError, ValueError):
            self.fail(BadInput("upstream_certificate", name=self.name.text() or file.name))
            return
        self.trusted.setText(_tr("Trusts only the certificate in {file}.").format(file=file.name))
        self.fit()


class _ServerDialog(Sheet):
    """The base class of confirmation dialogs for changes to a server."""

    act: QPushButton

    def __init__(
        self, services: AppContext, title: str, sentence: str, name: str, done: ServersChanged, parent: QWidget
    ) -> None:
        super().__init__(services, title, sentence, parent)
        self._name, self._done = name, done
        self._path = f"/api/upstreams/{segment(name)}"

    def _answered(self, answer: Upstreams) -> None:
        self._done(answer, self._name)
        self.accept()

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.fail(error)


class ResetCountDialog(_ServerDialog):
    """A confirmation dialog for resetting a server's token count."""

    def __init__(self, services: AppContext, name: str, cap: int, done: ServersChanged, parent: QWidget) -> None:
        title = _tr("Reset the token count for {name}").format(name=name)
        sentence = _tr("This resets the token count to zero, so the server may use another {cap} tokens.").format(
            cap=formats.number(cap)
        )
        super().__init__(services, title, sentence, name, done, parent)
        self.act = button(_tr("Reset count"), self.count, "primary")
        self.offer(_tr("Cancel"), self.act)

    def count(self) -> None:
        self.act.setEnabled(False)
        body, client = {"forget_spent": True}, self.services.client
        self.keep(client.post(self._path, body, self._answered, self._refused, answer=Upstreams))


class MeasureServerDialog(Sheet):
    """A confirmation dialog for a measurement, which costs tokens. It stays open until the measurement has ended."""

    def __init__(
        self, services: AppContext, name: str, done: Callable[[UpstreamMeasured], object], parent: QWidget
    ) -> None:
        sentence = _tr(
            "Measures the time to the first token, the speed of one answer, and how many answers at once are faster "
            "together. This uses up to {tokens} tokens of the server's limit and takes up to five minutes. Poolhouse "
            "never repeats it by itself."
        )
        super().__init__(
            services,
            _tr("Measure {name}").format(name=name),
            sentence.format(tokens=formats.number(MOST_MEASURED_TOKENS)),
            parent,
        )
        self._name, self._done = name, done
        self.act = button(_tr("Measure"), self.measure, "primary")
        self.offer(_tr("Cancel"), self.act)

    def measure(self) -> None:
        self.act.setEnabled(False)
        self.act.setText(_tr("Measuring…"))
        path = f"/api/upstreams/{segment(self._name)}/measure"
        self.keep(self.services.client.post(path, {}, self._measured, self._refused, answer=UpstreamMeasured))

    def _measured(self, measured: UpstreamMeasured) -> None:
        self._done(measured)
        self.accept()

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.act.setText(_tr("Measure"))
        self.fail(error)


class RemoveServerDialog(_ServerDialog):
    """A confirmation dialog for removing a server and its API key."""

    def __init__(self, services: AppContext, name: str, done: ServersChanged, parent: QWidget) -> None:
        title = _tr("Remove {name}").format(name=name)
        sentence = _tr("This also deletes the server's key from this computer. The server itself is not affected.")
        super().__init__(services, title, sentence, name, done, parent)
        self.act = button(title, self.remove, "danger")
        self.offer(_tr("Cancel"), self.act)

    def remove(self) -> None:
        self.act.setEnabled(False)
        client = self.services.client
        self.keep(client.delete(self._path, self._answered, self._refused, answer=Upstreams))


class UpstreamRows:
    """The settings rows for other servers. One row adds a server, and each existing server has its own."""

    def __init__(self, group: SettingsGroup) -> None:
        self._group = group
        self._rows: dict[str, tuple[Switch, Setting]] = {}
        self._caps: dict[str, int] = {}  # in tokens
        self._names: list[str] = []  # names of all servers
        self.tests: dict[str, QPushButton] = {}
        self.removals: dict[str, QPushButton] = {}
        self.counts: dict[str, QPushButton] = {}
        self.measures: dict[str, QPushButton] = {}
        self.rights: dict[str, dict[str, tuple[Switch, Setting]]] = {}  # by server, then by the field of the API
        self.add = button(_tr("Add a server…"), self._add)
        self._card = group.add(
            Setting(
                _tr("Another server may answer"),
                _tr("If the pool is full or doesn't have the model, another Poolhouse or a paid service can answer."),
                self.add,
                words="upstream openai cloud",
            ),
            title=_tr("Other servers"),
        )

    def show_servers(self, servers: list[Upstream]) -> None:
        """Show a switch and the token usage of each server."""
        self._names = [server.name for server in servers]
        for name in self._names:
            if name not in self._rows:
                self._rows[name] = self._row(name)
                self._card.put(self._rows[name][1])
                self.rights[name] = self._rights_of(name)
                for _, right in self.rights[name].values():
                    self._card.put(right)
        for name, (_, setting) in self._rows.items():
            setting.is_removed = name not in self._names
            for _, right in self.rights[name].values():
                right.is_removed = name not in self._names
        words = _tr("{spent} of {cap} tokens used. Requests sent to this server leave your household.")
        uncounted = _tr("The token count for this server was lost, so nothing is sent there until you reset the count.")
        for server in servers:
            switch, setting = self._rows[server.name]
            switch.show_on(server.on)
            for field, is_allowed in (("chats", server.chats), ("continues", server.continues)):
                allowed, right = self.rights[server.name][field]
                allowed.show_on(is_allowed)
                right.is_removed = not server.on
            self._caps[server.name] = server.cap_tokens
            cost = uncounted
            if server.is_counted:
                cost = words.format(spent=formats.number(server.spent_tokens), cap=formats.number(server.cap_tokens))
            show_if(self.counts[server.name], not server.is_counted or server.spent_tokens >= server.cap_tokens)
            show_if(self.measures[server.name], server.on)
            setting.set_about(" ".join(filter(None, [_reached(server), measured_line(server), cost])))
        self._group.search_again()

    def reset(self) -> None:
        """Turn all servers off."""
        for name in self._names:
            if self._rows[name][0].isChecked():
                self._turn(name, on=False)

    def _row(self, name: str) -> tuple[Switch, Setting]:
        switch = Switch(self._group.services.theme, name, partial(self._turn, name))
        switch.setAccessibleName(name)
        test = self.tests[name] = button(_tr("Test"), partial(self.test, name))
        test.setAccessibleName(_tr("Test {name}").format(name=name))
        remove = self.removals[name] = button(_tr("Remove…"), partial(self._remove, name))
        remove.setAccessibleName(_tr("Remove {name}").format(name=name))
        count = self.counts[name] = button(_tr("Reset count…"), partial(self._count, name))
        count.setAccessibleName(_tr("Reset the token count for {name}").format(name=name))
        count.hide()  # shown once the token limit is reached
        measure = self.measures[name] = button(_tr("Measure…"), partial(self._measure, name))
        measure.setAccessibleName(_tr("Measure {name}").format(name=name))
        measure.hide()  # shown while the server is on
        parts = Flow(count, test, measure, remove, switch)
        return switch, Setting(name, "", parts, words="upstream openai count spent")

    def _rights_of(self, name: str) -> dict[str, tuple[Switch, Setting]]:
        """Return a switch for each thing that the server may do besides answering programs."""
        texts = {
            "chats": (
                _tr("{name} may answer my own questions"),
                _tr("Only for models that you choose on it. Such chats are sent there and leave your household."),
            ),
            "continues": (
                _tr("{name} may continue interrupted answers"),
                _tr("If the pool can't finish an answer, the chat and the text so far are sent there."),
            ),
        }
        rights = {}
        for field, (title, about) in texts.items():
            named = title.format(name=name)
            switch = Switch(self._group.services.theme, named, partial(self._allow, name, field))
            rights[field] = switch, Setting(named, about, switch, words="upstream openai")
        return rights

    def _allow(self, name: str, field: str, on: bool) -> None:
        path = f"/api/upstreams/{segment(name)}"
        self._group.ask("POST", path, self._turned, {field: on}, answer=Upstreams)

    def test(self, name: str) -> None:
        """Test a server by requesting its model list, which uses no tokens."""
        path = f"/api/upstreams/{segment(name)}/test"
        self._group.ask("POST", path, self._tested, {}, answer=UpstreamTest)

    def _tested(self, test: UpstreamTest) -> None:
        if test.missing:
            text = _tr("{name} responds, but doesn't have {models}.")
            self._group.told.emit(text.format(name=test.name, models=", ".join(test.missing)), "error")
        else:
            text = _tr("{name} responds and has all the models you entered.")
            self._group.told.emit(text.format(name=test.name), "info")

    def _measure(self, name: str) -> None:
        MeasureServerDialog(self._group.services, name, self._measured, self._group).open()

    def _measured(self, measured: UpstreamMeasured) -> None:
        text = _tr("{name} was measured: {figures}")
        figures = speed_line(measured.model, measured.speed)
        self._group.told.emit(text.format(name=measured.name, figures=figures), "info")
        self._group.ask("GET", "/api/upstreams", self._turned, answer=Upstreams)

    def _turn(self, name: str, on: bool) -> None:
        path = f"/api/upstreams/{segment(name)}"
        self._group.ask("POST", path, self._turned, {"on": on}, answer=Upstreams)

    def _turned(self, answer: Upstreams) -> None:
        self.show_servers(answer.upstreams)

    def _add(self) -> None:
        AddServerDialog(self._group.services, self._names, self._added, self._group).open()

    def _added(self, answer: Upstreams, name: str) -> None:
        self.show_servers(answer.upstreams)
        self.test(name)

    def _count(self, name: str) -> None:
        services, cap = self._group.services, self._caps[name]
        ResetCountDialog(services, name, cap, self._counted, self._group).open()

    def _counted(self, answer: Upstreams, name: str) -> None:
        self.show_servers(answer.upstreams)
        self._group.told.emit(_tr("The token count for {name} was reset.").format(name=name), "info")

    def _remove(self, name: str) -> None:
        RemoveServerDialog(self._group.services, name, self._removed, self._group).open()

    def _removed(self, answer: Upstreams, name: str) -> None:
        self.show_servers(answer.upstreams)
        text = _tr("{name} and its key were removed.")
        self._group.told.emit(text.format(name=name), "info")


def _reached(server: Upstream) -> str:
    if server.last_contact is None:
        return _tr("Not reached since the background service started.")
    return _tr("Last reached at {time}.").format(time=moment(server.last_contact))


def measured_line(server: Upstream) -> str:
    """Return the latest measurement of a server in a sentence, or "" if it was never measured."""
    if not server.speeds:
        return ""
    model, speed = max(server.speeds.items(), key=lambda item: item[1].at)
    return _tr("Measured {time}: {figures}").format(time=moment(speed.at), figures=speed_line(model, speed))


def speed_line(model: str, speed: UpstreamSpeed) -> str:
    """Return the measured figures of a model in a sentence."""
    best = speed.best
    if best.streams > 1:
        words = _tr("{model}, first token after {first}, {alone} for one answer, {together} for {streams} at once.")
    else:
        words = _tr("{model}, first token after {first}, {alone} for one answer, and no more for several at once.")
    return words.format(
        model=model,
        first=formats.seconds(speed.ttft_s),
        alone=formats.speed(speed.decode_tok_s),
        together=formats.speed(best.tok_s),
        streams=best.streams,
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("Upstreams", text)
