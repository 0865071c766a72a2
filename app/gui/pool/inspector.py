"""The panel under map and table: everything known of the chosen machine and its link, and what can be done."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QMenu, QWidget

from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import set_role
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import Between, LinkFacts, MachineFacts
from app.gui.pool.map import card_drawing
from app.gui.pool.pool_actions import MachineActions
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label, paragraph, show_if, tooltip
from app.gui.widgets.layouts import clear, column, row

COLUMNS, COLUMN_WIDTH = 3, 240  # at most; of a column at least, with its name
LEAST_CHARACTERS = 32  # of name, state and reason beside the buttons
TITLE_WIDTH = 240
AGES_MS = 30_000
Fact = tuple[str, str]


class Inspector(QFrame):
    """Hidden while no machine is chosen."""

    def __init__(self, services: AppContext, acts: MachineActions, closed: object) -> None:
        super().__init__()
        set_role(self, "card")
        self.setAccessibleName(self.tr("Details"))
        self._services, self._acts = services, acts
        self._facts: MachineFacts | None = None
        self._between: Sequence[Between] = ()
        self._shown: object = None
        self._told: list[Fact] = []
        self._names, self._values = [0] * COLUMNS, [0] * COLUMNS  # how wide they are, by column
        self._n_columns = COLUMNS
        self.title = label("", "section")
        self._picture, self.state = label(), label()
        self.why = Elided("", "muted")
        self.again = button(self.tr("Use again"), lambda: self._on(acts.use_again))
        self.leave = button(self.tr("Leave out"), self._toggle)
        self.test = button(self.tr("Test link"), lambda: self._on(acts.test))
        self.unseen = button(self.tr("Find out why…"), lambda: self._on(acts.why))
        self.pause = button(self.tr("Pause lending"))
        self.resume = button(self.tr("Lend again"), acts.resume)
        self._pauses = QMenu(self)
        self.pause.setMenu(self._pauses)
        self.rename = button(self.tr("Rename"), lambda: self._on(acts.rename))
        self.more = IconButton(services.theme, "more", self.tr("More"), self._open_more)
        close = IconButton(services.theme, "close", self.tr("Close details"), closed)  # type: ignore[arg-type]
        who = row(self.title, self._picture, self.state, gap=sizes.S)
        who.addWidget(self.why, 1)
        told = QWidget()
        told.setLayout(who)
        buttons = (
            self.again,
            self.leave,
            self.test,
            self.unseen,
            self.pause,
            self.resume,
            self.rename,
            self.more,
            close,
        )
        for one in buttons:
            show_if(one, one is close)
        head = Beside(told, *buttons, gap=sizes.S, least=LEAST_CHARACTERS)
        self.trouble = paragraph("")
        self.use = button("", lambda: self._on(acts.use_interface))
        self._wrong = QWidget()
        self._wrong.setLayout(Beside(self.trouble, self.use, gap=sizes.S))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(sizes.S)
        self._grid.setVerticalSpacing(sizes.XS)
        box = column(head, self._wrong, self._grid, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.M, sizes.M, sizes.L)
        self.setLayout(box)
        self._ages = QTimer(self)  # measurements grow old without news
        self._ages.setInterval(AGES_MS)
        self._ages.timeout.connect(lambda: self.show_machine(self._facts, self._between))
        self.hide()

    def show_machine(self, facts: MachineFacts | None, between: Sequence[Between] = ()) -> None:
        """Everything about it; None: nothing is chosen. between: links to others than the one in the centre."""
        self.setVisible(facts is not None)
        if facts is None:
            self._ages.stop()
        elif not self._ages.isActive():
            self._ages.start()
        self._facts, self._between = facts, between
        links = [facts.link if facts else None, *(one.link for one in between)]
        ages = [link and machine_words.measured(link) for link in links]
        now = (facts, tuple(between), ages, self._acts.testing, self._services.theme.colours)
        if facts is None or now == self._shown:
            return
        self._shown = now
        state = machine_words.state(facts)
        side = self._services.theme.px(sizes.SECTION)
        colour = self._services.theme.colour(state.colour).name()
        self.title.setText(card_drawing.short(facts.name, self.title.font(), self._services.theme.px(TITLE_WIDTH)))
        self.title.setToolTip(tooltip(facts.name))
        self._picture.setPixmap(icon(state.icon, colour).pixmap(side, side))
        self.state.setText(state.word)
        self.why.say(machine_words.why(facts))
        self._buttons(facts)
        self._say_trouble(facts.link)
        link = _about_link(facts.link) if facts.link else []
        self._fill(_about(facts) + link + [_to_other(facts.id, one) for one in between])

    def first_button(self) -> QWidget:
        """Where the keyboard goes when the details are opened."""
        buttons = (self.again, self.leave, self.test, self.unseen, self.pause, self.resume, self.rename, self.more)
        return next((one for one in buttons if one.isVisible()), self.more)

    def _buttons(self, facts: MachineFacts) -> None:
        self.again.setVisible(facts.doubted)
        self.leave.setVisible((facts.lends or facts.left_out) and not facts.doubted)
        self.leave.setText(self.tr("Take back in") if facts.left_out else self.tr("Leave out"))
        self.test.setVisible(facts.can_test)
        self.test.setEnabled(not self._acts.testing)
        self.test.setText(self.tr("Testing…") if self._acts.testing else self.tr("Test link"))
        self.unseen.setVisible(not facts.online and not facts.this)
        self.pause.setVisible(facts.this and facts.state != "paused")
        self.resume.setVisible(facts.this and facts.state == "paused")
        self.rename.setVisible(facts.this)
        self.more.setVisible(not facts.this)
        self._pauses.clear()
        self._acts.fill_pause(self._pauses, facts)

    def _say_trouble(self, link: LinkFacts | None) -> None:
        """That the link goes by the wrong interface, and the button that changes it."""
        self._wrong.setVisible(link is not None and bool(link.trouble))
        if link is not None:
            self.trouble.setText(link.trouble)
            text = self.tr("Use {interface}").format(interface=link.better_interface)
            self.use.setText(text)
            self.use.setVisible(bool(link.better_interface))
            self.use.setEnabled(not self._acts.testing)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        fit = self.width() // self._services.theme.px(COLUMN_WIDTH)
        if self._n_columns != (many := max(1, min(COLUMNS, fit))):
            self._n_columns = many
            self._fill(self._told)
        self._share()

    def _fill(self, facts: list[Fact]) -> None:
        self._told = facts
        clear(self._grid)
        rows = -(-len(facts) // self._n_columns)
        self._names, self._values = [0] * COLUMNS, [0] * COLUMNS
        for place, (name, value) in enumerate(facts):
            across, down = divmod(place, rows)
            named, shown = label(name, "muted"), Elided(value)
            shown.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(named, down, 2 * across)
            self._grid.addWidget(shown, down, 2 * across + 1)
            wide = shown.fontMetrics().horizontalAdvance(value) + 1
            self._names[across] = max(self._names[across], named.sizeHint().width())
            self._values[across] = max(self._values[across], wide)
        self._share()

    def _share(self) -> None:
        """To each column as much of the room as its words take."""
        gaps = 2 * self._n_columns * sizes.S + sizes.L + sizes.M
        room = self.width() - sum(self._names) - gaps
        for across, wide in enumerate(shared(self._values, room)):
            self._grid.setColumnStretch(2 * across + 1, wide)

    def _toggle(self) -> None:
        self._on(self._acts.toggle)

    def _on(self, act: object) -> None:
        if self._facts is not None:
            act(self._facts)  # type: ignore[operator]

    def _open_more(self) -> None:
        if self._facts is not None:
            self._acts.menu(self._facts, self.more.mapToGlobal(self.more.rect().bottomLeft()))


def shared(wanted: list[int], room: int) -> list[int]:
    """To each what it wants; where that is too much, the most goes from those that want most."""
    given, left = [0] * len(wanted), max(0, room)
    for place, at in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        given[at] = min(wanted[at], left // (len(wanted) - place))
        left -= given[at]
    return given


def _about(facts: MachineFacts) -> list[Fact]:
    found = [
        (_tr("Device"), facts.device or _tr("not known")),
        (_tr("Lent"), machine_words.lent(facts)),
        (_tr("Memory"), formats.size(facts.total_bytes) if facts.total_bytes else _tr("not known")),
        (_tr("Holds"), machine_words.holds(facts) or _tr("no layers")),
        (_tr("May"), machine_words.roles(facts.roles)),
        (_tr("Address"), facts.address or _tr("not known")),
    ]
    if not facts.roles:
        found.pop(4)
    if computes := machine_words.computes(facts):
        text = _tr("{percent} of the time of an answer")
        found.insert(4, (_tr("Computes"), text.format(percent=computes)))
    if facts.own_bytes:
        found.insert(2, (_tr("Used by the model"), formats.size(facts.own_bytes)))
    if facts.hottest_c is not None:
        found.insert(1, (_tr("Processor"), machine_words.heat(facts)))
    if facts.watts is not None:
        found.insert(1, (_tr("Power"), machine_words.power(facts)))
    if facts.link_mbit:
        found.insert(1, (_tr("Network"), machine_words.link_limit(facts)))
    if facts.other_engine:
        found.insert(1, (_tr("Engine"), facts.other_engine))
    if facts.other_version:
        found.insert(1, (_tr("Version"), facts.other_version))
    if facts.this:
        found.pop()  # its own address is in the settings
    nobody = _tr("nobody else") if facts.this else _tr("nobody")
    found.append((_tr("Used by"), ", ".join(facts.used_by) or nobody))
    return found


def _about_link(link: LinkFacts) -> list[Fact]:
    found = [
        (_tr("Speed"), _both_ways(link)),
        (_tr("Round trip"), _round_trip(link)),
        (_tr("Carried by"), machine_words.carried(link) if link.kind else _tr("not measured")),
        (_tr("Measured"), machine_words.measured(link) or _tr("not yet")),
    ]
    if link.preferred:
        found.insert(3, (_tr("Preferred"), link.preferred))
    if link.share is not None:
        found.append((_tr("Of each token"), machine_words.share(link.share).word))
    if link.token_s is not None and link.chunk_s is not None:
        found.insert(2, (_tr("On the way"), _on_the_way(link.token_s, link.chunk_s, link.chunk_tokens)))
    return found


def _to_other(machine: str, one: Between) -> Fact:
    """Its link to another machine than the one in the centre."""
    far = one.names[0 if one.ends[1] == machine else 1]
    return _tr("To {name}").format(name=far), machine_words.way(one.link)


def _both_ways(link: LinkFacts) -> str:
    if link.out_bytes_per_s is None or link.in_bytes_per_s is None:
        return _tr("not measured")
    text = _tr("{out} there, {back} back")
    there, back = formats.rate(link.out_bytes_per_s), formats.rate(link.in_bytes_per_s)
    return text.format(out=there, back=back)


def _round_trip(link: LinkFacts) -> str:
    if link.round_trip_s is None:
        return _tr("not measured")
    told = machine_words.milliseconds(link.round_trip_s)
    if link.slow_round_trip_s is None:
        return told
    text = _tr("{median}, 19 of 20 under {slow}")
    return text.format(median=told, slow=machine_words.milliseconds(link.slow_round_trip_s))


def _on_the_way(token_s: float, chunk_s: float, chunk_tokens: int) -> str:
    """What a token and a chunk of a prompt take there and back."""
    text = _tr("{token} a token, {chunk} for {count} tokens of a prompt")
    return text.format(
        token=machine_words.milliseconds(token_s), chunk=machine_words.milliseconds(chunk_s), count=chunk_tokens
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
