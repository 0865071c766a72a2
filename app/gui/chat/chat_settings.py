"""The settings dialog of a chat, for its model, context, system message and sampling parameters.

Fields without a value show the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.api.models import Models
from app.api.snapshot import Snapshot
from app.core.chat import Chat
from app.gui.api.node_client import Call, NodeClient
from app.gui.api.node_state import NodeState
from app.gui.app import preferences
from app.gui.app.app_context import AppContext
from app.gui.chat.answer import MAX_TOKENS, THINK, THINK_TOKENS
from app.gui.chat.presets import MAX_PRESETS, SAMPLING_PARAMETERS, Presets, SamplingParameter, valid_sampling
from app.gui.chat.sent_pictures import sees
from app.gui.look import formats, sizes
from app.gui.look.sentences import GUIDE, model_name
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.dialog import CompactDialog, NameDialog
from app.gui.widgets.fields import DropDown, wheel_scrolls_page
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import layout_widget, row


def shown_name(now: Snapshot, name: str) -> str:
    """Return the display name of a model, which says so if another server has it."""
    served = now.served_model(name)
    if served is None:
        return model_name(name)
    words = QCoreApplication.translate("ModelNames", "{model} on {server}, another server")
    return str(words).format(model=model_name(served[1]), server=served[0].name)


class ModelNames(QObject):
    """The models that can answer in a chat: those on this machine, those that other machines have loaded, and those of
    other servers.

    A guest has only the models of its hosts. `changed` is called whenever the node has sent a new list.
    """

    def __init__(
        self, client: NodeClient, pool: NodeState, changed: Callable[[], object], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._pool, self._changed = client, pool, changed
        self._call: Call | None = None
        self._models: Models | None = None
        self._hosts: Sequence[str] | None = None  # the hosts when the list was requested

    @property
    def names(self) -> list[str]:
        """The names of the models. The list is empty until the node has sent it."""
        loaded = self._pool.now.loaded
        here = names_of(self._models or Models(), self._pool.now.hosts, loaded.model if loaded is not None else "")
        shared = [] if self._pool.now.hosts is not None else self._pool.now.shared
        return [*here, *(model.reference for model in shared if model.ready), *self._served()]

    def _served(self) -> list[str]:
        """Return the references of the models of other servers. A guest's questions go to its hosts only."""
        now = self._pool.now
        if now.hosts is not None:
            return []
        return [f"{model}@{server.name}" for server in now.servers for model in server.models]

    def shown_name(self, name: str) -> str:
        """Return the display name of a model, which says so if another server has it."""
        return shown_name(self._pool.now, name)

    def context_length(self, name: str) -> int | None:
        """Return the context length that a model was trained with, or None if it is unknown.

        For a model that another machine has loaded, return the context length with which it is loaded there.
        """
        if (shared := self._pool.now.shared_model(name)) is not None:
            return shared.context
        lengths = {model.name: model.context_length for model in (self._models or Models()).models}
        return lengths.get(name)

    def is_base(self, name: str) -> bool:
        """Return whether a model only completes text, or False if that is unknown."""
        if (shared := self._pool.now.shared_model(name)) is not None:
            return shared.base
        return any(model.is_base for model in (self._models or Models()).models if model.name == name)

    def sees(self, name: str) -> bool:
        """Return whether a model can process pictures, or True if that is unknown."""
        if (known := sees(self._pool.now, name)) is not None:
            return known
        models = self._models or Models()
        here = [model.vision for model in models.models if model.name == name]
        listed = here + [model.vision for model in models.offered if model.name == name]
        return any(listed) or not listed

    def load(self) -> None:
        """Request the list of models from the node."""
        if self._call is None or not self._call.running:
            self._hosts = self._pool.now.hosts
            self._call = self._client.get("/models", self._loaded, answer=Models)

    def pool_changed(self) -> None:
        """Request the list again if the hosts that answer for this machine have changed."""
        if self._models is not None and self._pool.now.hosts != self._hosts:
            self.load()

    def close(self) -> None:
        if self._call is not None and self._call.running:
            self._call.cancel()

    def _loaded(self, models: Models) -> None:
        self._models = models
        self._changed()


def names_of(models: Models, hosts: Sequence[str] | None, loaded: str) -> list[str]:
    """Return the names of the models that can answer. `hosts` is set only on a guest that runs no model itself."""
    offered = [model.name for model in models.offered if model.writes]
    if hosts is not None:
        return offered
    if offered:  # a guest that has loaded a model of its own can also answer with that
        return list(dict.fromkeys([loaded, *offered]))
    return [model.name for model in models.models if model.writes]


CONTEXTS = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
RANDOM_SEED = -1  # value that stands for a random seed
TOKEN_LIMIT = 1 << 17
WIDTH = 520
SYSTEM_LINES, MIN_CHARACTERS = 5, 8


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The maximum context length of a model, or None if unknown."""

    context: int | None = None
    is_guide: bool = False  # the Guide is sent only the last question


class ChatSettings(CompactDialog):
    """The dialog for the settings of a chat. It calls `changed` with the updated chat when the user saves.

    `limits` returns the limits of the model with the given name, or of the loaded model if the name is None.
    """

    def __init__(
        self,
        theme: Theme,
        presets: Presets,
        chat: Chat,
        defaults: Chat,
        models: Sequence[str],
        limits: Callable[[str | None], ModelLimits],
        changed: Callable[[Chat], None],
        parent: QWidget,
    ) -> None:
        super().__init__(theme, "", "", parent)
        self._presets, self._chat, self._changed = presets, chat, changed
        self._limits = limits
        self._defaults = defaults  # a chat with the settings of new chats
        self.setWindowTitle(self.tr("Chat settings"))
        self.heading.hide()
        self.be_wide(theme.px(WIDTH))
        self._is_tight = self.width() < theme.px(WIDTH)
        self.model = self._models(models)
        self.context = DropDown()
        self._hint = paragraph("", "caption")
        self.system = QPlainTextEdit()
        self.system_presets = DropDown()
        self.sampling_presets = DropDown()
        self.sampling_fields = {parameter.name: self._sampling_field(parameter) for parameter in SAMPLING_PARAMETERS}
        self.longest = QSpinBox()
        self.thinking = DropDown()
        self.longest_thought = QSpinBox()
        self._lay_out()
        self._fill(chat)
        self._fill_presets()
        presets.changed.connect(self._fill_presets)

    # Display

    def _lay_out(self) -> None:
        self._prepare()
        upper = self._form(
            (self.tr("Model"), self.model),
            (self.tr("Context"), self.context),
            (self.tr("Maximum answer length"), self.longest),
            (self.tr("Thinking"), self.thinking),
            (self.tr("Maximum thinking length"), self.longest_thought),
        )
        names = _sampling_labels(self)
        fields = [(names[name], field) for name, field in self.sampling_fields.items()]
        lower = self._form(*fields, columns=1 if self._is_tight else 2)
        system, sampling = self.tr("System message"), self.tr("Sampling")
        presets = layout_widget(row(self.system_presets, self.remove_system, self._save_system_button))
        samplings = layout_widget(row(self.sampling_presets, self.remove_sampling, self._save_sampling_button))
        self.add(
            upper,
            self._hint,
            Flow(label(system, "section"), presets, right_from=1),
            self.system,
            Flow(label(sampling, "section"), samplings, right_from=1),
            lower,
        )
        reset = button(self.tr("Reset to defaults"), lambda: self._fill(self._defaults))
        self.buttons.addWidget(reset)
        self.buttons.right_from = 1
        self.offer(self.tr("Cancel"), button(self.tr("Save"), self._save, "primary"))
        needed = self._inner.minimumSize().width() + 2 * sizes.XL + sizes.M + sizes.SCROLL_BAR
        self.be_wide(max(self._theme.px(WIDTH), needed))

    def _prepare(self) -> None:
        """Configure the fields before laying them out."""
        self.system.setAccessibleName(self.tr("System message"))
        self.system.setPlaceholderText(self.tr("Describe the model's role and how it should answer"))
        self.system.setTabChangesFocus(True)
        line = self.system.fontMetrics().lineSpacing()
        self.system.setFixedHeight(SYSTEM_LINES * line + self._theme.px(sizes.XL))
        wheel_scrolls_page(self.longest)
        self.longest.setRange(1, TOKEN_LIMIT)
        self.longest.setGroupSeparatorShown(True)
        self.longest.setSuffix(self.tr(" tokens"))
        self.thinking.addItem(self.tr("Model's default"), None)
        self.thinking.addItem(self.tr("On"), 1)
        self.thinking.addItem(self.tr("Off"), 0)
        wheel_scrolls_page(self.longest_thought)
        self.longest_thought.setRange(0, TOKEN_LIMIT)
        self.longest_thought.setGroupSeparatorShown(True)
        self.longest_thought.setSuffix(self.tr(" tokens"))
        self.longest_thought.setSpecialValueText(self.tr("No limit"))
        self.thinking.setToolTip(
            self.tr("Some models think before they answer. Some of them don't let you turn thinking off.")
        )
        self.thinking.setAccessibleDescription(self.thinking.toolTip())
        self._save_system_button = button(self.tr("Save as preset…"), self._ask_system)
        self._save_sampling_button = button(self.tr("Save as preset…"), self._ask_sampling)
        remove = self.tr("Remove preset")
        self.remove_system = IconButton(self._theme, "delete", remove, self._drop_system)
        self.remove_sampling = IconButton(self._theme, "delete", remove, self._drop_sampling)
        shortened = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        for box in (self.model, self.context, self.system_presets, self.sampling_presets):
            box.setMinimumContentsLength(MIN_CHARACTERS)
            box.setSizeAdjustPolicy(shortened)
        self.model.currentIndexChanged.connect(self._offer_contexts)
        self._offer_contexts()
        self.system_presets.activated.connect(self._use_system)
        self.sampling_presets.activated.connect(self._use_sampling)
        for box in (self.system_presets, self.sampling_presets):
            box.currentIndexChanged.connect(self._offer_removal)

    def _form(self, *fields: tuple[str, QWidget], columns: int = 1) -> QGridLayout:
        """Return a form with a label beside each field and `columns` fields in each row."""
        form = QGridLayout()
        form.setHorizontalSpacing(sizes.L)
        form.setVerticalSpacing(sizes.S)
        for number, (name, field) in enumerate(fields):
            column = 2 * (number % columns)
            if isinstance(field, QAbstractSpinBox):
                field.lineEdit().setTextMargins(self._theme.px(sizes.S), 0, 0, 0)
            caption = label(name)
            caption.setWordWrap(self._is_tight)
            form.addWidget(caption, number // columns, column)
            form.addWidget(field, number // columns, column + 1)
            form.setColumnStretch(column + 1, 1)
            field.setAccessibleName(name)
        return form

    def _models(self, models: Sequence[str]) -> QComboBox:
        box = DropDown()
        box.addItem(self.tr("The loaded model"), None)
        own = [self._chat.model] if self._chat.model not in (None, *models) else []
        for name in (*models, *own):
            box.addItem(model_name(str(name)), name)
        return box

    def _offer_contexts(self) -> None:
        """Offer the context lengths that the selected model supports."""
        limits, chosen = self._limits(self.model.currentData()), self.context.currentData()
        longest = limits.context
        self.context.clear()
        self.context.addItem(self.tr("Keep the current context"), None)
        for size in sorted({*CONTEXTS, *filter(None, (self._chat.context, longest))}):
            words = self.tr("At least {count} tokens").format(count=formats.number(size))
            if longest is None or size <= longest:
                self.context.addItem(words, size)
        self.context.setCurrentIndex(max(0, self.context.findData(chosen)))
        hint = self.tr("Choosing a larger context than the current one reloads the model.")
        if longest is not None:
            words = self.tr("This model's maximum context is {count} tokens.")
            hint = f"{words.format(count=formats.number(longest))} {hint}"
        if limits.is_guide:
            own = self.tr("The Guide treats each question separately. Its default temperature is 0.")
            hint = f"{hint} {own}"
        self._hint.setText(hint)

    def _sampling_field(self, parameter: SamplingParameter) -> QSpinBox | QDoubleSpinBox:
        box: QSpinBox | QDoubleSpinBox
        if parameter.whole:
            box = QSpinBox()
            box.setRange(int(parameter.minimum), int(min(parameter.maximum, (1 << 31) - 1)))
            if parameter.default is None:
                box.setMinimum(RANDOM_SEED)
                box.setSpecialValueText(self.tr("Random"))
        else:
            box = QDoubleSpinBox()
            box.setDecimals(2)
            box.setSingleStep(parameter.step)
            box.setRange(parameter.minimum, parameter.maximum)
        wheel_scrolls_page(box)
        default = self.tr("Random")
        if parameter.default is not None:
            default = formats.number(parameter.default, 0 if parameter.whole else 2)
        box.setToolTip(self.tr("Default: {value}").format(value=default))
        box.setAccessibleDescription(box.toolTip())
        return box

    def _fill(self, chat: Chat) -> None:
        """Show the settings of a chat. Settings that the chat does not specify show their defaults."""
        self.model.setCurrentIndex(max(0, self.model.findData(chat.model)))
        self.context.setCurrentIndex(max(0, self.context.findData(chat.context)))
        self.system.setPlainText(chat.system)
        self.longest.setValue(int(chat.sampling.get("max_tokens", MAX_TOKENS)))
        self.thinking.setCurrentIndex(max(0, self.thinking.findData(chat.sampling.get(THINK, None))))
        self.longest_thought.setValue(int(chat.sampling.get(THINK_TOKENS, 0)))
        self._fill_sampling(chat.sampling)

    def _fill_sampling(self, values: object) -> None:
        known = valid_sampling(values)
        for parameter in SAMPLING_PARAMETERS:
            default = RANDOM_SEED if parameter.default is None else parameter.default
            value = known.get(parameter.name, default)
            self.sampling_fields[parameter.name].setValue(value)  # type: ignore[arg-type]

    # Presets

    def _fill_presets(self) -> None:
        for box, names in (
            (self.system_presets, self._presets.systems()),
            (self.sampling_presets, self._presets.samplings()),
        ):
            chosen = box.currentText()
            box.clear()
            box.addItem(self.tr("Presets"))
            box.addItems(list(names))
            box.setCurrentIndex(max(0, box.findText(chosen)))
            box.setAccessibleName(
                self.tr("System message presets") if box is self.system_presets else self.tr("Sampling presets")
            )
        self._limit(self._save_system_button, len(self._presets.own_systems()))
        self._limit(self._save_sampling_button, len(self._presets.own_samplings()))

    def _limit(self, keep: QPushButton, n_kept: int) -> None:
        full = self.tr("There are already {count} presets. Remove one first.")
        keep.setEnabled(n_kept < MAX_PRESETS)
        keep.setToolTip("" if n_kept < MAX_PRESETS else full.format(count=formats.number(n_kept)))

    def _use_system(self) -> None:
        text = self._presets.systems().get(self.system_presets.currentText())
        if text is not None:
            self.system.setPlainText(text)

    def _use_sampling(self) -> None:
        values = self._presets.samplings().get(self.sampling_presets.currentText())
        if values is not None:
            self._fill_sampling(values)

    def _offer_removal(self) -> None:
        """Offer to remove the selected preset if the user created it."""
        system, sampling = self.system_presets.currentText(), self.sampling_presets.currentText()
        self.remove_system.setVisible(system in self._presets.own_systems())
        self.remove_sampling.setVisible(sampling in self._presets.own_samplings())

    def _drop_system(self) -> None:
        """Remove the preset. Its text remains in the field, so that the user can save it again."""
        self._presets.remove_system(self.system_presets.currentText())

    def _drop_sampling(self) -> None:
        self._presets.remove_sampling(self.sampling_presets.currentText())

    def _ask_system(self) -> None:
        text = self.system.toPlainText()
        self._ask_name(lambda name: self._presets.save_system(name, text), self.system_presets)

    def _ask_sampling(self) -> None:
        values = self._sampling()
        self._ask_name(lambda name: self._presets.save_sampling(name, values), self.sampling_presets)

    def _ask_name(self, keep: Callable[[str], None], box: QComboBox) -> None:
        def named(name: str) -> None:
            keep(name)
            box.setCurrentText(name)

        title, prompt = self.tr("Save as preset"), self.tr("Preset name")
        NameDialog(self._theme, title, prompt, named, self).open()

    # Saving

    def _sampling(self) -> dict[str, float | int]:
        values = {
            name: field.value()
            for name, field in self.sampling_fields.items()
            if not (name == "seed" and field.value() == RANDOM_SEED)
        }
        sampling = valid_sampling(values)
        if self.longest.value() != MAX_TOKENS:
            sampling["max_tokens"] = self.longest.value()
        return sampling

    def _thinking(self) -> dict[str, int]:
        thinking: dict[str, int] = {}
        if (chosen := self.thinking.currentData()) is not None:
            thinking[THINK] = int(chosen)
        if self.longest_thought.value():
            thinking[THINK_TOKENS] = self.longest_thought.value()
        return thinking

    def _save(self) -> None:
        self._changed(
            replace(
                self._chat,
                model=self.model.currentData(),
                context=self.context.currentData(),
                system=self.system.toPlainText(),
                sampling=self._sampling() | self._thinking(),
            )
        )
        self.accept()


def _sampling_labels(dialog: ChatSettings) -> dict[str, str]:
    """Return the labels of the sampling parameters."""
    return {
        "temperature": dialog.tr("Temperature"),
        "top_k": dialog.tr("Top k"),
        "top_p": dialog.tr("Top p"),
        "min_p": dialog.tr("Min p"),
        "repeat_penalty": dialog.tr("Repeat penalty"),
        "seed": dialog.tr("Seed"),
    }


class ChatSettingsOpener:
    """A helper that opens a chat's settings dialog with the available models.

    `model_of` returns the name of the model that answers in a chat.
    """

    def __init__(
        self, services: AppContext, models: ModelNames, model_of: Callable[[Chat], str], parent: QWidget
    ) -> None:
        self._services, self._models, self._model_of = services, models, model_of
        self._parent = parent
        self._presets = Presets(services.preferences, parent)

    def open(self, chat: Chat, done: Callable[[Chat], None]) -> None:
        """Open the settings of a chat. `done` is called with the updated chat when the user saves."""
        system, sampling = preferences.new_chat_defaults(self._services.preferences)
        defaults = Chat(chat.id, system=system, sampling=sampling)

        def limits(model: str | None) -> ModelLimits:
            name = self._model_of(replace(chat, model=model))
            return ModelLimits(self._models.context_length(name), name == GUIDE)

        names, theme = self._models.names, self._services.theme
        ChatSettings(theme, self._presets, chat, defaults, names, limits, done, self._parent).open()
