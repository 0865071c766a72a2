"""The checks of `poolhouse doctor` on this computer and its node, and the view of their findings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from app import __version__
from app.api.computer import Check as NodeCheck
from app.api.computer import Checks
from app.cli import terminal_text
from app.client import NodeClient
from app.core.diagnostics import Check, sorted_checks
from app.core.errors import AppError, Reason
from app.core.reasons import said
from app.machine import settings
from app.machine.checks import machine_checks
from app.machine.keyring_store import open_keystore
from app.machine.paths import Home
from app.network import identity
from app.network.membership.household_log import LogStore

Json = dict[str, Any]


async def damaged_files(home: Home) -> list[Check]:
    """Return the damaged files that prevent a node from starting, each with a remedy. Writes nothing."""

    async def of_settings() -> object:
        return await asyncio.to_thread(settings.load, home.settings_file)

    async def of_identity() -> object:
        return await identity.load(home, await open_keystore(home))

    async def of_household() -> object:
        return await LogStore(home.household, home.write).load()

    reads: dict[str, Callable[[], Awaitable[object]]] = {
        "Settings": of_settings,
        "Identity": of_identity,
        "Household": of_household,
    }
    checks = []
    for name, read in reads.items():
        try:
            await read()
        except AppError as error:
            checks.append(Check(name, False, error.reason))
    return checks


async def all_checks(home: Home) -> list[Check]:
    """Return the findings about this machine and, if a node is running, about the node."""
    findings = await machine_checks(home)
    return sorted_checks(
        [
            Check("Poolhouse", True, Reason("check_version", {"version": __version__, "python": _python()})),
            *findings,
            *await node_checks(home, [check.cause for check in findings]),
        ]
    )


async def node_checks(home: Home, known: Collection[Reason | None] = ()) -> list[Check]:
    """Return the version and findings of the running node or, if none is running, the problems that prevent it from
    starting.

    known: causes that other checks have already reported.
    """
    try:
        async with NodeClient(home, any_version=True) as client:
            runs = client.runtime.version
            if runs != __version__:
                return [Check("Node", False, Reason("node_other_version", {"node": runs, "own": __version__}))]
            checks = (await client.get("/doctor", Checks)).checks
    except AppError as error:
        ok = None if error.reason.code in ("node_not_running", "home_missing") else False
        stopped = Check("Node", ok, error.reason)
        damaged = [] if ok is False else await damaged_files(home)
        return [*(check for check in damaged if check.cause not in known), stopped]
    return [
        Check("Node", True, Reason("check_node_runs", {"version": runs})),
        *(_check_of_node(check) for check in checks),
    ]


def _check_of_node(check: NodeCheck) -> Check:
    return Check(
        check.name,
        check.ok,
        check.cause_facts,
        check.cure_facts,
        check.code,
        check.machine,
        check.address,
        check.tested,
    )


def _python() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


STATES = {True: ("fine", "green"), False: ("problem", "red"), None: ("note", "yellow")}


def checks_json(checks: Sequence[Check]) -> Json:
    """Return the findings as JSON. `ok` is False if any finding is a problem."""
    return {"ok": all(check.ok is not False for check in checks), "checks": [_check_json(check) for check in checks]}


def _check_json(check: Check) -> Json:
    cause, cure = (said(reason) if reason else "" for reason in (check.cause, check.cure))
    return {"name": check.name, "ok": check.ok, "cause": cause, "cure": cure}


def checks_view(checks: Sequence[Check]) -> RenderableType:
    """Show a row for each finding. A problem also has a remedy."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for check in checks:
        word, style = STATES[check.ok]
        text = Text(_sentence(check.cause))
        if check.cure and check.ok is not True:
            text.append(f" {_sentence(check.cure)}", style="bold")
        table.add_row(Text(word, style=style), terminal_text.name(check.name), text)
    return table


def _sentence(reason: Reason | None) -> str:
    return terminal_text.line(terminal_text.with_home(said(reason))) if reason else ""
