"""The Chat settings, which are the defaults for new chats."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit

from app.gui.app.app_context import AppContext
from app.gui.app.preferences import CTRL_ENTER, ENTER, PARAGRAPHS, SAMPLING_VALUES, SEND_KEY, SYSTEM, SamplingValue
from app.gui.look import formats
from app.gui.settings.settings_group import Choice, NumberField, Setting, SettingsGroup
from app.gui.widgets.buttons import Switch
from app.gui.widgets.labels import keep_width

NUMBER_WIDTH, SYSTEM_LINES = 112, 5


class Chat(SettingsGroup):
    """The Chat settings. A chat's own settings take precedence over them."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Chat"))
        self.system = QPlainTextEdit()
        self.system.setTabChangesFocus(True)
        self.system.setPlaceholderText(self.tr("For example: Answer briefly, in German."))
        self.system.setFixedHeight(services.theme.px(SYSTEM_LINES * 22))
        self.system.textChanged.connect(self._keep_system)
        services.lock.changed.connect(self._show_system)
        self.send = Choice(
            [(ENTER, self.tr("Enter")), (CTRL_ENTER, self.tr("Ctrl+Enter"))], lambda key: self._keep(SEND_KEY, key)
        )
        self.add(
            Setting(
                self.tr("System message"),
                self.tr("Sent to the model at the start of every new chat."),
                self.system,
                wide=True,
                default=self.tr("Default: none"),
                words="prompt",
            ),
            Setting(
                self.tr("Send with"),
                self.tr("Shift+Enter always starts a new line."),
                self.send,
                default=self.tr("Default: Enter"),
                words="key keyboard",
            ),
            title=self.tr("New chats"),
        )
        words = self.tr("Read paragraphs aloud")
        self.paragraphs = Switch(services.theme, words, lambda on: self._keep(PARAGRAPHS, on))
        self.add(
            Setting(
                words,
                self.tr(
                    "Screen readers announce each paragraph when it is finished, instead of the whole answer at the "
                    "end."
                ),
                self.paragraphs,
                default=self.tr("Default: off"),
                words="screen reader accessibility",
            ),
            title=self.tr("Answers"),
        )
        self.numbers = {value.name: self._number(value) for value in SAMPLING_VALUES}
        self.add(*(self._setting(value) for value in SAMPLING_VALUES), title=self.tr("Sampling"))

    def refresh(self) -> None:
        preferences = self.services.preferences
        for value in SAMPLING_VALUES:
            self.numbers[value.name].show_value(value.chosen(preferences))
        self.send.show_value(preferences.text(SEND_KEY, ENTER))
        self.paragraphs.show_on(preferences.flag(PARAGRAPHS))
        self.services.lock.request_key()
        self._show_system()

    def _show_system(self) -> None:
        preferences = self.services.preferences
        self.system.setEnabled(not preferences.is_locked(SYSTEM))
        kept = preferences.text(SYSTEM)
        if self.system.toPlainText() != kept:
            self.system.setPlainText(kept)

    def reset(self) -> None:
        for key in (SYSTEM, SEND_KEY, PARAGRAPHS, *(value.key for value in SAMPLING_VALUES)):
            if not self.services.preferences.is_locked(key):
                self.services.preferences.forget(key)
        self.refresh()

    def _keep(self, key: str, value: object) -> None:
        self.services.preferences.keep(key, value)

    def _keep_system(self) -> None:
        text = self.system.toPlainText()
        if text != self.services.preferences.text(SYSTEM):
            self._keep(SYSTEM, text)

    def _number(self, value: SamplingValue) -> NumberField:
        made = NumberField(value.least, value.most, value.digits, lambda now: self._keep(value.key, now))
        keep_width(self.services.theme, made, NUMBER_WIDTH)
        return made

    def _setting(self, value: SamplingValue) -> Setting:
        titles = {
            "temperature": (
                self.tr("Temperature"),
                self.tr("Higher values make answers more varied. 0 always picks the most likely word."),
            ),
            "top_k": (
                self.tr("Top k"),
                self.tr("Limits the choice to this many of the most likely words. 0 means no limit."),
            ),
            "top_p": (
                self.tr("Top p"),
                self.tr("Limits the choice to the most likely words, up to this total probability. 1 means no limit."),
            ),
            "min_p": (
                self.tr("Min p"),
                self.tr("Skips words whose probability is below this fraction of the most likely word's."),
            ),
            "repeat_penalty": (self.tr("Repeat penalty"), self.tr("Values above 1 reduce repetition.")),
        }
        title, about = titles[value.name]
        default = self.tr("Default: {value}").format(value=formats.number(value.default, value.digits))
        return Setting(title, about, self.numbers[value.name], default=default, words=value.name)
