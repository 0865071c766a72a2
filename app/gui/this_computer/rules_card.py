"""The card for the rules that pause lending. Each rule is shown with its value and the current reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QWidget

from app.api.computer import Programs
from app.api.snapshot import LendingReadings, LendingRules
from app.core.errors import AppError
from app.core.lending.policy import MAX_PROGRAM_CHARACTERS, MAX_PROGRAMS, Battery, executable
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.theme import set_role
from app.gui.this_computer.lending_store import LendingStore
from app.gui.this_computer.rule_controls import DebouncedNumber, RuleRow
from app.gui.widgets.buttons import IconButton, Switch, button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.labels import ElidedLabel, label
from app.gui.widgets.layouts import clear_layout, column, line, row

SHOWN_CHARACTERS = 12  # minimum visible characters of the name


class ProgramsEditor(QWidget):
    """The list of programs that pause lending. It suggests running programs and installed games.

    Changes take effect immediately. Removing a program can be undone.
    """

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._lending = services, lending
        self._call: Call | None = None
        self._shown: tuple[tuple[str, bool], ...] | None = None
        self.entry = _Entry(self.refresh)
        self.entry.setAccessibleName(self.tr("Program to add"))
        edit = self.entry.lineEdit()
        if edit is not None:
            edit.setAccessibleName(self.entry.accessibleName())
            edit.setPlaceholderText(self.tr("Name of a program"))
            edit.returnPressed.connect(self._add)
        self.add = button(self.tr("Add"), self._add)
        self._row = RuleRow(self.tr("While these programs run"))
        self._list = column(gap=0)
        entry = row(self.entry, self.add, gap=sizes.S)
        entry.setStretch(0, 1)
        self.setLayout(column(self._row, self._list, entry, gap=sizes.S))
        lending.changed.connect(self.show_state)
        self.show_state()

    def show_state(self) -> None:
        """Show the programs in the current rules."""
        names, running = self._lending.rules.programs, self._lending.readings.programs
        full = len(names) >= MAX_PROGRAMS
        self.entry.setEnabled(self._lending.is_known and not full)
        self.add.setEnabled(self._lending.is_known and not full)
        self._row.say(self._words(names, full))
        shown = tuple((name, executable(name) in running) for name in names)
        if shown != self._shown:
            self._shown = shown
            clear_layout(self._list)
            for name, is_running in shown:
                self._list.addLayout(self._line(name, is_running))

    def _words(self, names: list[str], full: bool) -> str:
        if full:
            return self.tr("The list is full. Remove a program to add another.")
        if not names:
            return self.tr("No programs listed. Add a game or another program that needs the whole machine.")
        return self.tr("Lending resumes when these programs are closed.")

    def _line(self, name: str, running: bool) -> QHBoxLayout:
        remove = IconButton(
            self._services.theme, "close", self.tr("Remove {name}").format(name=name), lambda: self._remove(name)
        )
        words = self.tr("running now") if running else self.tr("not running")
        line = row(ElidedLabel(name), label(words, "warning" if running else "caption"), remove, gap=sizes.M)
        line.setStretch(0, 1)
        return line

    def _add(self) -> None:
        name = self.entry.program[:MAX_PROGRAM_CHARACTERS]
        listed = self._lending.rules.programs
        if name and executable(name) and executable(name) not in map(executable, listed):
            self._lending.change({"programs": [*listed, name]})
        self.entry.setEditText("")

    def _remove(self, name: str) -> None:
        self._lending.change({"programs": [program for program in self._lending.rules.programs if program != name]})

    def refresh(self) -> None:
        """Request the running programs and installed games to suggest."""
        if self._call is None:
            self._call = self._services.client.get("/programs", self._offered, self._no_offer, answer=Programs)

    def _offered(self, answer: Programs) -> None:
        self._call = None
        listed = set(map(executable, self._lending.rules.programs))
        games = {game.program: game.name for game in answer.games}
        offered = dict.fromkeys([*answer.programs, *games])  # running programs come first
        texts = {program: self._offer(program, games.get(program, "")) for program in offered if program not in listed}
        self.entry.offer(texts)

    def _offer(self, program: str, game: str) -> str:
        return self.tr("{game} ({program})").format(game=game, program=program) if game else program

    def _no_offer(self, error: AppError) -> None:
        """Continue without suggestions. The user can still type the name of a program."""
        self._call = None


class _Entry(DropDown):
    """An editable drop-down list that suggests running programs and games."""

    def __init__(self, opened: Callable[[], object]) -> None:
        super().__init__()
        self._opened = opened
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(SHOWN_CHARACTERS)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def showPopup(self) -> None:  # noqa: N802  Qt's name
        self._opened()
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        """Ignore the mouse wheel. Otherwise, scrolling the page could change the selected program."""
        event.ignore()

    @property
    def program(self) -> str:
        """The selected program, or the typed name."""
        at = self.findText(self.currentText(), Qt.MatchFlag.MatchExactly)
        return str(self.itemData(at)) if at >= 0 else self.currentText().strip()

    def offer(self, texts: Mapping[str, str]) -> None:
        """Replace the suggestions, which are display texts keyed by program. The typed text is preserved."""
        typed = self.currentText()
        self.clear()
        for program, text in texts.items():
            self.addItem(text, program)
        self.setEditText(typed)
        if self.view().isVisible():
            super().showPopup()  # adapts the popup to the new length of the list


MINUTE_S = 60
USUAL_IDLE_S, MOST_IDLE_MINUTES = 5 * MINUTE_S, 24 * 60
USUAL_BATTERY_PERCENT, BATTERY_GAP_PERCENT = 50, 10  # the gap is the same as in app/core/lending/policy.py
MOST_DRAIN_S = 600
HOT_BOUNDS, CARD_HOT_BOUNDS = (50, 105), (50, 110)  # the same as in app/core/lending/policy.py
USUAL_CARD_CELSIUS = 85


class RulesCard(QFrame):
    """The card with all rules. Changes take effect immediately."""

    def __init__(self, services: AppContext, lending: LendingStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._lending, self._theme = lending, services.theme
        rows: list[QWidget] = [
            label(self.tr("Pause lending"), "section"), self._idle_row(), line(),
            self._battery_row(), line(), self._screen_row(), line(), self._gpu_row(), line(),
            self._card_hot_row(), line(), self._hot_row(), line(), self._network_row(), line(),
            self._memory_row(), line(),
        ]  # fmt: skip
        self.programs = ProgramsEditor(services, lending)
        rows += [self.programs, line(), self._drain_row()]
        box = column(*rows, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        lending.changed.connect(self.show_state)
        self.show_state()

    def _idle_row(self) -> QWidget:
        title = self.tr("While I'm using this computer")
        self.idle_minutes = DebouncedNumber(
            self.tr("Idle minutes before lending"),
            self.tr("min"),
            (1, MOST_IDLE_MINUTES),
            lambda minutes: self._lending.change({"idle_s": minutes * MINUTE_S}),
        )
        self.idle = Switch(self._theme, title, self._idle_switched)
        self._idle = RuleRow(title, self.idle_minutes, self.idle)
        return self._idle

    def _battery_row(self) -> QWidget:
        title = self.tr("On battery")
        self.battery_percent = DebouncedNumber(
            self.tr("Pause below this battery level"),
            "%",
            (1, 100),
            lambda percent: self._lending.change({"battery_percent": percent}),
        )
        self.battery = Switch(self._theme, title, self._battery_switched)
        self._battery = RuleRow(title, self.battery_percent, self.battery)
        return self._battery

    def _gpu_row(self) -> QWidget:
        title = self.tr("While another program is using the graphics card")
        self.gpu = Switch(self._theme, title, lambda on: self._lending.change({"gpu": on}))
        self._gpu = RuleRow(title, self.gpu)
        return self._gpu

    def _card_hot_row(self) -> QWidget:
        title = self.tr("While the graphics card is too hot")
        self.card_celsius = DebouncedNumber(
            self.tr("Pause at this temperature of the graphics card"),
            "°C",
            CARD_HOT_BOUNDS,
            lambda degrees: self._lending.change({"card_celsius": degrees}),
        )
        self.card_hot = Switch(self._theme, title, self._card_hot_switched)
        self._card_hot = RuleRow(title, self.card_celsius, self.card_hot)
        return self._card_hot

    def _screen_row(self) -> QWidget:
        title = self.tr("While a program is full screen")
        self.screen_rule = Switch(self._theme, title, lambda on: self._lending.change({"screen": on}))
        self._screen = RuleRow(title, self.screen_rule)
        return self._screen

    def _hot_row(self) -> QWidget:
        title = self.tr("While this computer is too hot")
        self.hot_celsius = DebouncedNumber(
            self.tr("Pause at this temperature"),
            "°C",
            HOT_BOUNDS,
            lambda degrees: self._lending.change({"hot_celsius": degrees}),
        )
        self.hot = Switch(self._theme, title, lambda on: self._lending.change({"hot": on}))
        self._hot = RuleRow(title, self.hot_celsius, self.hot)
        return self._hot

    def _network_row(self) -> QWidget:
        title = self.tr("On a VPN or a metered network")
        self.network = Switch(self._theme, title, lambda on: self._lending.change({"network": on}))
        self._network = RuleRow(title, self.network)
        return self._network

    def _memory_row(self) -> QWidget:
        always = label(self.tr("Always on"), "muted")
        self._memory = RuleRow(self.tr("When my programs need the memory"), always)
        return self._memory

    def _drain_row(self) -> QWidget:
        title = self.tr("Time limit for finishing an answer")
        self.drain = DebouncedNumber(
            title, self.tr("s"), (0, MOST_DRAIN_S), lambda seconds: self._lending.change({"drain_s": seconds})
        )
        row = RuleRow(title, self.drain)
        row.say(self.tr("After this time, the answer is stopped and its memory is freed. “Stop now” doesn't wait."))
        return row

    def show_state(self) -> None:
        """Show the current rules and readings."""
        lending = self._lending
        rules, readings = lending.rules, lending.readings
        switches = (self.idle, self.battery, self.screen_rule, self.gpu, self.card_hot, self.hot, self.network)
        for control in (*switches, self.card_celsius, self.hot_celsius, self.drain):
            control.setEnabled(lending.is_known)
        self._show_idle(rules.idle_s, readings.idle_s)
        self._show_battery(rules.battery_percent, readings.battery)
        self._show_gpu(rules.gpu, readings.gpu_percent)
        self._show_card_hot(rules.card_celsius, readings.card_c)
        self._show_screen(rules.screen, readings.full_screen)
        self._show_hot(rules, readings)
        self._show_network(rules.network, readings.network)
        free_bytes = lending.state.free_bytes if lending.state else 0
        self._memory.say(self.tr("{size} is free now.").format(size=formats.size(free_bytes)))
        self.drain.show_value(round(rules.drain_s))

    def _show_idle(self, idle_s: float, unused_s: float | None) -> None:
        self.idle.show_on(bool(idle_s))
        self.idle_minutes.setVisible(bool(idle_s))
        self.idle_minutes.show_value(max(1, round((idle_s or USUAL_IDLE_S) / MINUTE_S)))
        if not idle_s:
            self._idle.say(self.tr("Lends while you work, at low priority."))
            return
        now = self.tr("This system doesn't report user activity, so the computer counts as idle.")
        if unused_s is not None:
            now = self.tr("Now: last used {time} ago.").format(time=formats.seconds(unused_s))
        self._idle.say(self.tr("Lends after the computer has been idle for this long.") + " " + now)

    def _show_battery(self, percent: int, reading: Battery | None) -> None:
        self.battery.show_on(bool(percent))
        self.battery_percent.setVisible(bool(percent))
        self.battery_percent.show_value(percent or USUAL_BATTERY_PERCENT)
        if not percent:
            self._battery.say(self.tr("Lends at any battery level."))
            return
        resumes = percent + BATTERY_GAP_PERCENT
        rule = self.tr("Pauses below {percent}%, resumes above {more}%.")
        if resumes >= 100:
            rule = self.tr("Pauses below {percent}%, resumes when plugged in.")
        if percent >= 100:
            rule = self.tr("Lends only while plugged in.")
        words = rule.format(percent=percent, more=resumes)
        self._battery.say(words + " " + self._power(reading))

    def _power(self, reading: Battery | None) -> str:
        if reading is None:
            return self.tr("Now: no battery.")
        text = self.tr("Now: {percent}%, on battery.")
        if reading.plugged:
            text = self.tr("Now: {percent}%, plugged in.")
        return text.format(percent=round(reading.percent))

    def _show_gpu(self, on: bool, busy_percent: float | None) -> None:
        self.gpu.show_on(on)
        if not on:
            self._gpu.say(self.tr("Lends memory even while other programs are running."))
            return
        words = self.tr("Usage by other programs: unknown.")
        if busy_percent is not None:
            words = self.tr("Now: other programs are using {percent}% of the card.").format(percent=round(busy_percent))
        self._gpu.say(words)

    def _show_card_hot(self, most_celsius: int, celsius: float | None) -> None:
        self.card_hot.show_on(bool(most_celsius))
        self.card_celsius.setVisible(bool(most_celsius))
        self.card_celsius.show_value(most_celsius or USUAL_CARD_CELSIUS)
        if not most_celsius:
            words = self.tr("Lends at any temperature of the graphics card.")
        elif celsius is None:
            words = self.tr("Temperature of the graphics card: unknown.")
        else:
            words = self.tr("Now: the graphics card is at {degrees} °C.").format(degrees=round(celsius))
        self._card_hot.say(words)

    def _show_screen(self, on: bool, filled: bool | None) -> None:
        self.screen_rule.show_on(on)
        if not on:
            words = self.tr("Also lends during games, movies and presentations.")
        elif filled is None:
            words = self.tr("This system doesn't report full-screen programs.")
        else:
            words = self.tr("Now: a program is full screen.") if filled else self.tr("Now: no program is full screen.")
        self._screen.say(words)

    def _show_network(self, on: bool, kind: str | None) -> None:
        self.network.show_on(on)
        words = {
            "free": self.tr("Now: not on a VPN or a metered network."),
            "metered": self.tr("Now: on a metered network."),
            "vpn": self.tr("Now: on a VPN."),
        }.get(kind or "", self.tr("This system doesn't report the network type."))
        self._network.say(words if on else self.tr("Lends on any network."))

    def _show_hot(self, rules: LendingRules, readings: LendingReadings) -> None:
        self.hot.show_on(rules.hot)
        self.hot_celsius.setVisible(rules.hot)
        self.hot_celsius.show_value(rules.hot_celsius)
        if not rules.hot:
            words = self.tr("Lends at any temperature.")
        elif readings.hottest_c is None:
            words = self.tr("This system doesn't report its temperature.")
        else:
            words = self.tr("Now: the processor is at {degrees} °C.").format(degrees=round(readings.hottest_c))
        self._hot.say(words)

    def _idle_switched(self, on: bool) -> None:
        self._lending.change({"idle_s": USUAL_IDLE_S if on else 0})

    def _card_hot_switched(self, on: bool) -> None:
        self._lending.change({"card_celsius": USUAL_CARD_CELSIUS if on else 0})

    def _battery_switched(self, on: bool) -> None:
        self._lending.change({"battery_percent": USUAL_BATTERY_PERCENT if on else 0})
