"""The start and end of a node: settings, log file, signals, and the lock that allows only one node per home.

The log file contains JSON objects for programs; app/core/log_redaction.py turns them into sentences.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import logging.handlers
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aiohttp
import msgspec
import psutil
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app import __version__
from app.core.errors import AppError, Reason, Refused
from app.core.reasons import SENTENCES, said, sentence_for
from app.machine import data_format, keyring_store, running_node, settings
from app.machine.interfaces import interfaces
from app.machine.paths import Home
from app.machine.power_events.power_events import listen
from app.machine.running_node import HomeLock
from app.machine.settings import NodeOptions, SettingsStore
from app.machine.versions.restart import note_restarted, restart_if_wanted
from app.network import identity
from app.node.control.servers import Servers
from app.node.lending.lending_policy import MemoryRules
from app.node.lending.sleep import handle_power_event, stay_awake
from app.node.links.discovery_service import open_listening_socket
from app.node.node import Node
from app.node.verification.verifier import delete_check_files


class JsonLines(logging.Formatter):
    """Formats each log record as a line of JSON with time, level, logger and message and, if present, request, facts
    and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if request := getattr(record, "request", ""):
            entry["request"] = request
        if facts := getattr(record, "facts", None):
            entry["facts"] = facts
        if record.exc_info:
            entry["error"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class _Sentence(str):
    """A string that `%r` formats like `%s`."""

    __slots__ = ()
    __repr__ = str.__str__


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record, with reasons and AppErrors replaced by their sentences."""
    args = record.args
    if not args:
        return record.getMessage()
    if isinstance(args, Mapping):
        return str(record.msg) % {name: _plain_value(value) for name, value in args.items()}
    return str(record.msg) % tuple(_plain_value(value) for value in args)


def _plain_value(value: object) -> object:
    """Return the sentence of a reason or AppError. A reason without a known sentence, such as one from a newer
    machine, is returned unchanged, so that its log line is not lost."""
    reason = value.reason if isinstance(value, AppError) else value
    if not isinstance(reason, Reason) or reason.code not in SENTENCES:
        return value
    try:
        return _Sentence(said(reason))
    except (KeyError, ValueError):
        return value


log = logging.getLogger(__name__)

LOG_BYTES, LOG_FILES = 2 << 20, 3
ALIVE_SECONDS = 2.0
LOOK_SECONDS = 0.1
END_SECONDS = 8.0  # time limit of a shutdown; an operating system that shuts down waits ten seconds


def print_ready(facts: dict[str, Any]) -> None:
    """Print the facts as one line of JSON for the parent process."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def run(options: NodeOptions, ready: Callable[[dict[str, Any]], None] = print_ready) -> None:
    """Run the node until a signal stops it. Raises AppError if it cannot start."""
    home = Home.at(options.home).create()
    late = threading.Timer(END_SECONDS, _kill_node)
    late.daemon = True
    lock = HomeLock(home.lock_file)
    try:
        asyncio.run(_main(options, home, lock, late.start, ready))
    except* AppError as errors:
        raise _first(errors) from None
    finally:
        late.cancel()
        lock.release()


async def _main(
    options: NodeOptions,
    home: Home,
    lock: HomeLock,
    stopping: Callable[[], None],
    ready: Callable[[dict[str, Any]], None],
) -> None:
    await _acquire_home(home, lock)
    await asyncio.to_thread(data_format.claim, home)
    _log_to(home)
    await identity.leave_if_requested(home)
    await asyncio.to_thread(delete_check_files, home.stages)
    _check(options)
    await asyncio.to_thread(warn_missing_interfaces, options)
    stop = asyncio.Event()
    for number in _stop_signals():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C cancels this task instead
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    choices = SettingsStore(home.settings_file, _settings(options, home))
    me = await identity.load_or_create(home, await keyring_store.open_keystore(home))
    sock = open_listening_socket(options, home.settings_file)
    group = asyncio.TaskGroup()
    node = Node(options, home, choices, me, sock, group)
    log.info("node %s starts in %s", node.settings.name, home.root)
    async with node.lending_service.stage_host, group:
        try:
            await node.lending_policy.begin(node.lending_service)
            await _serve(node, Servers(node, stop.set), group, ready, stop, stopping)
        finally:
            node.lending_service.end()
    log.info("node stopped")


async def _serve(
    node: Node,
    servers: Servers,
    group: asyncio.TaskGroup,
    ready: Callable[[dict[str, Any]], None],
    stop: asyncio.Event,
    stopping: Callable[[], None],
) -> None:
    """Serve until `stop` is set, then shut down in order: lending, servers, models, links."""
    async with node.network:
        own = [group.create_task(node.run(), name="services")]
        await servers.start(group)
        control, place = servers.control, node.home.runtime_file
        await asyncio.to_thread(running_node.claim, place, control.port, control.token, __version__)
        await asyncio.to_thread(note_restarted, node.home.root)
        try:
            node.changed()
            identity_facts = {"id": node.network.id, "name": node.settings.name}
            ready(identity_facts | {"peer_port": node.network.port, "control_port": control.port})
            hear = listen(partial(handle_power_event, node.lending_policy, woke=node.graphics.woke))
            own.append(group.create_task(stay_awake(node.snapshot), name="stay awake"))
            own.append(group.create_task(hear, name="watch power events"))
            await stop.wait()
            await node.lending_policy.leave()
        finally:
            stopping()
            place.unlink(missing_ok=True)
            node.model_manager.close()
            await servers.stop()
            await node.model_manager.unload()
            for task in own:
                task.cancel()


def _stop_signals() -> list[int]:
    """Return the signals that stop the node: SIGINT, SIGTERM and SIGHUP, unless SIGHUP is ignored (nohup). Closing a
    terminal sends SIGHUP, and ending a session sends both SIGTERM and SIGHUP."""
    hangup = getattr(signal, "SIGHUP", None)
    heard = hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([hangup] if heard else ())]


def _kill_node() -> None:
    """Kill this process and its workers. Called when the shutdown takes too long because a disk, a driver or a bug
    blocks a thread."""
    log.error("the node did not stop in time and is killed with all its workers")
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    restart_if_wanted(sys.argv[1:])
    os._exit(1)


def _settings(options: NodeOptions, home: Home) -> settings.Settings:
    """Return the saved settings with this start's options applied. A name given as an option is saved."""
    saved = settings.load(home.settings_file)
    # the same option as at an earlier start does not undo a later renaming
    if options.name and options.name != saved.given_name:
        saved = msgspec.structs.replace(saved, name=options.name, given_name=options.name)
    settings.save(home.settings_file, saved)
    lending = saved.lending
    if options.lend_bytes is not None:
        lending = dataclasses.replace(lending, memory_bytes=options.lend_bytes)
    if options.limit_bytes is not None:
        lending = dataclasses.replace(lending, limit_bytes=options.limit_bytes)
    return msgspec.structs.replace(saved, lending=lending)


def _check(options: NodeOptions) -> None:
    """Check the memory options against this computer's memory. Raises BadInput."""
    for chosen in (options.lend_bytes, options.limit_bytes):
        if chosen is not None:
            MemoryRules(chosen).check(chosen)


def warn_missing_interfaces(options: NodeOptions) -> None:
    """Warn about chosen interfaces that do not exist, in case of a typo. The node waits for them, because a VPN may
    come up later."""
    there = [interface.name for interface in interfaces()] if options.interfaces else []
    for name in options.interfaces:
        if name not in there:
            sentence = sentence_for("interface_awaited", name=name, there=", ".join(there) or Reason("none"))
            log.warning("%s", sentence)
            sys.stderr.write(sentence + "\n")
            sys.stderr.flush()


async def _acquire_home(home: Home, lock: HomeLock) -> None:
    """Acquire the lock of the home, waiting while another node starts or stops there. Raises Refused if a node is
    running or the wait takes too long."""
    waited_until = asyncio.get_running_loop().time() + END_SECONDS + ALIVE_SECONDS
    while True:
        await _refuse_if_running(home)
        try:
            if lock.acquire():
                home.create()  # an uninstallation may have erased the home meanwhile
                return
        except FileNotFoundError:
            home.create()
        if asyncio.get_running_loop().time() > waited_until:
            raise Refused("node_starts_already", home=str(home.root))
        await asyncio.sleep(LOOK_SECONDS)


async def _refuse_if_running(home: Home) -> None:
    """Raise Refused if a node already runs in this home. Two nodes would share the same identity."""
    running = running_node.read(home.runtime_file)
    if running is None:
        return
    headers = {"Authorization": f"Bearer {running.token}"}
    timeout = aiohttp.ClientTimeout(total=ALIVE_SECONDS)
    url = f"http://127.0.0.1:{running.port}/status"
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as answer:
            if answer.status == 200:
                raise Refused("node_runs_already", home=str(home.root), pid=running.pid)
    except (aiohttp.ClientError, TimeoutError):
        return  # the file was left by a node that was killed


def _log_to(home: Home) -> None:
    """Write log records of level INFO and above to a rotating file as JSON. Records never contain chat text."""
    handler = logging.handlers.RotatingFileHandler(
        home.logs / "node.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
    )
    handler.setFormatter(JsonLines())
    handler.addFilter(remove_http_bytes)
    logging.getLogger("zeroconf").addFilter(shorten_network_error)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def shorten_network_error(record: logging.LogRecord) -> bool:
    """Shorten the log record of a network error to one line without a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, OSError):
        text = " ".join(f"{record.getMessage()}: {error}".split())
        record.msg, record.args, record.exc_info, record.exc_text = text, (), None, None
    return True


def remove_http_bytes(record: logging.LogRecord) -> bool:
    """Remove the bytes of an invalid HTTP message from a log record, because they may contain a key or chat text."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            record.msg, record.args = f"{record.getMessage()}: {type(error).__name__}", ()
            record.exc_info, record.exc_text = None, None
            return True
        error = error.__cause__ or error.__context__
    return True


def _first(errors: BaseExceptionGroup[AppError]) -> AppError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, AppError)
    return error
