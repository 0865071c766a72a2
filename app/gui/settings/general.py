"""The General settings, for language, appearance, animations, start at sign-in, and the first steps."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QMainWindow

from app.gui.app.app_context import AppContext
from app.gui.app.preferences import NOTIFY_ANSWERS, NOTIFY_LOSSES, NOTIFY_NEWS, STEP_PERCENT, TEXT_SCALE, notifies
from app.gui.look import formats
from app.gui.look.language import LANGUAGE
from app.gui.look.motion import ALWAYS, NEVER, REDUCE_MOTION, SYSTEM
from app.gui.look.theme import MAX_SCALE, MIN_SCALE, Scheme
from app.gui.settings.settings_group import Choice, Setting, SettingsGroup
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.widgets.buttons import Switch, button

SCHEME = "look/scheme"


class General(SettingsGroup):
    """The General settings. They take effect immediately."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("General"))
        system = ("", self.tr("Same as system"))
        languages = [system, ("en", "English"), ("de", "Deutsch")]
        self.language = Choice(languages, self._choose_language)
        schemes = [
            (str(Scheme.SYSTEM), self.tr("Same as system")),
            (str(Scheme.LIGHT), self.tr("Light")),
            (str(Scheme.DARK), self.tr("Dark")),
        ]
        self.scheme = Choice(schemes, self._choose_scheme)
        percents = range(round(100 * MIN_SCALE), round(100 * MAX_SCALE) + 1, STEP_PERCENT)
        self.scale = Choice(
            [(str(percent), f"{percent}{formats.percent_sign()}") for percent in percents], self._choose_scale
        )
        motions = [(SYSTEM, self.tr("Same as system")), (ALWAYS, self.tr("Always")), (NEVER, self.tr("Never"))]
        self.motion = Choice(motions, services.motion.choose)
        services.theme.changed.connect(self.refresh)  # keys change the text size, too
        self.autostart = AutostartSwitch(services)
        again = button(self.tr("Show them"), self._first_steps)
        again.setAccessibleName(self.tr("Show the first steps again"))
        default = self.tr("Default: same as system")
        self.add(
            Setting(
                self.tr("Language"), "", self.language,
                default=default, words="Sprache language deutsch english",
            ),
            Setting(self.tr("Theme"), "", self.scheme, default=default, words="dark light color"),
            Setting(
                self.tr("Text size"), self.tr("Scales everything in this window."), self.scale,
                default=self.tr("Default: 100%"), words="zoom scale font",
            ),
            Setting(
                self.tr("Reduce motion"), self.tr("Turns off animations."), self.motion,
                default=default, words="animation",
            ),
            title=self.tr("Appearance"),
        )  # fmt: skip
        self.add(
            Setting("", "", self.autostart, wide=True, words=self.tr("Start at sign-in, login")),
            Setting(
                self.tr("First steps"),
                self.tr("Choose a name and a role and pair computers, as on the first launch."),
                again,
            ),
            title=self.tr("Start"),
        )
        kinds = (
            (NOTIFY_ANSWERS, self.tr("Answers"), self.tr("When an answer is ready and this window isn't in front.")),
            (
                NOTIFY_LOSSES,
                self.tr("Lost computers and models"),
                self.tr("When a computer or model that you use is lost."),
            ),
            (
                NOTIFY_NEWS,
                self.tr("Downloads and pairing"),
                self.tr("When a download finishes or a computer is paired."),
            ),
        )
        self.notifications = {kind: Switch(services.theme, name, self._keeper(kind)) for kind, name, _ in kinds}
        self.add(
            *(
                Setting(
                    name, words, self.notifications[kind], default=self.tr("Default: on"),
                    words="notification desktop message tray",
                )
                for kind, name, words in kinds
            ),
            title=self.tr("Notifications"),
        )  # fmt: skip

    def refresh(self) -> None:
        preferences = self.services.preferences
        self.language.show_value(preferences.text(LANGUAGE))
        self.scheme.show_value(str(preferences.scheme))
        percent = 100 * preferences.text_scale / STEP_PERCENT
        self.scale.show_value(str(round(percent) * STEP_PERCENT))
        self.motion.show_value(self.services.motion.wish)
        for kind, switch in self.notifications.items():
            switch.show_on(notifies(preferences, kind))

    def take_focus(self) -> None:
        self.language.setFocus()

    def reset(self) -> None:
        language = self.services.preferences.text(LANGUAGE)
        for key in (LANGUAGE, SCHEME, TEXT_SCALE, REDUCE_MOTION, *self.notifications):
            self.services.preferences.forget(key)
        self.services.theme.choose(Scheme.SYSTEM, MIN_SCALE)
        self.refresh()
        if language:
            self._speak(language)

    def _keeper(self, kind: str) -> Callable[[bool], None]:
        return lambda on: self.services.preferences.keep(kind, on)

    def _choose_language(self, language: str) -> None:
        before = self.services.preferences.text(LANGUAGE)
        self._keep_language(language)
        self._speak(before)

    def _keep_language(self, language: str) -> None:
        if language:
            self.services.preferences.keep(LANGUAGE, language)
        else:
            self.services.preferences.forget(LANGUAGE)

    def _speak(self, before: str) -> None:
        """Switch to the chosen language. If that would lose unfinished work, restore the setting to `before`."""
        if not self.services.renew():
            self._keep_language(before)
            self.refresh()
            words = self.tr("Finish what you have open in this window, then choose the language again.")
            self.told.emit(words, "info")

    def _choose_scheme(self, scheme: str) -> None:
        theme = self.services.theme
        self.services.preferences.keep(SCHEME, scheme)
        theme.choose(Scheme(scheme), theme.scale)

    def _choose_scale(self, percent: str) -> None:
        theme = self.services.theme
        self.services.preferences.keep(TEXT_SCALE, int(percent) / 100)
        theme.choose(theme.scheme, int(percent) / 100)

    def _first_steps(self) -> None:
        from app.gui.welcome.welcome import Welcome

        window = self.window()
        if isinstance(window, QMainWindow):
            Welcome(self.services, window).begin()
