"""A bar over the map while machines are left out: what that would change, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QFrame

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.announce import announce
from app.gui.look.sentences import model_name
from app.gui.look.theme import set_role
from app.gui.pool.load_forecast import Expected
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import paragraph


class WhatIf(QFrame):
    """Hidden while nobody is left out."""

    def __init__(self, load: Callable[[], object], take_back: Callable[[], object]) -> None:
        super().__init__()
        set_role(self, "notice")
        self.setAccessibleName(self.tr("What would change"))
        self.words = paragraph()
        self.load = button(self.tr("Load it this way"), load)
        self.back = button(self.tr("Take all back in"), take_back)
        box = Beside(self.words, self.load, self.back, gap=sizes.S)
        box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self.hide()

    def show_change(self, machines: Sequence[MachineFacts], now: Expected, then: Expected | None) -> None:
        """`then` is None while the planner thinks."""
        out = any(one.left_out for one in machines)
        self.setVisible(out)
        if not out:
            return
        told = self._told(machines, now, then)
        if told != self.words.text():
            self.words.setText(told)
            announce(self, told)
        self.load.setEnabled(then is not None and then.fits)

    def _told(self, machines: Sequence[MachineFacts], now: Expected, then: Expected | None) -> str:
        names = ", ".join(one.name for one in machines if one.left_out)
        if then is None:
            return self.tr("Without {names}: planning…").format(names=names)
        name = model_name(then.model)
        if not then.fits:
            text = self.tr("Without {names}, {model} does not fit. {why}")
            return text.format(names=names, model=name, why=then.problem)
        where = self.tr("on %n machine(s)", "", len(then.machines))
        if then.tok_s is None:
            text = self.tr("Without {names}, {model} still fits, {where}. Its speed is not measured yet.")
            return text.format(names=names, model=name, where=where)
        fast = formats.speed(then.tok_s)
        before = "" if now.tok_s is None else formats.speed(now.tok_s)
        in_use = any(one.left_out and one.layers for one in machines)  # placed by hand
        if before and before != fast:
            text = self.tr("Without {names}, {model} would run at {then} instead of {now}, {where}.")
        elif before and not in_use:
            text = self.tr("Without {names} nothing changes: {model} would run at {then}, {where}.")
        else:
            text = self.tr("Without {names}, {model} would run at {then}, {where}.")
        return text.format(names=names, model=name, then=fast, now=before, where=where)
