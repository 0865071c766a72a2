"""The commands `poolhouse chats …`, which encrypt and decrypt the window's chats on this disk."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.cli.options import HomeOption, JsonOption
from app.cli.output import Output
from app.core.errors import Refused, Unreachable
from app.core.reasons import said

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.cli.chats_file import Chats
    from app.machine.paths import Home

Json = dict[str, Any]
KEY = "/history/key"
LATER = "System messages chosen in the window follow the next time it is opened."


def chats_group() -> typer.Typer:
    commands = typer.Typer(
        name="chats",
        help="Encrypt the window's chats on this disk, or decrypt them.",
        epilog="To export chats, open the Chat page of the window and click the three dots next to New chat.",
        no_args_is_help=True,
    )
    for command in (status, encrypt, decrypt):
        commands.command(command.__name__)(command)
    return commands


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show where the chats are, whether they are encrypted, and whether their key is available."""
    from app.cli.chats_file import check_key, find_file, read_chats
    from app.gui.chat.history.history_cipher import Cipher

    node_home = _home(home)
    file = find_file(node_home)
    chats, problem, place = read_chats(file), None, None
    if chats.encrypted:
        try:
            key, place = asyncio.run(_key(node_home, make=False))
            if key is None:
                problem = Refused("history_key_gone", place=place, path=str(file))
            else:
                check_key(file, Cipher(key), place)
        except Refused as error:
            problem = error
    sentence = said(problem) if problem else None
    _show(Output(as_json), chats, {"key_place": place, "problem": sentence}, lambda: _state(chats, place, sentence))


def encrypt(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Encrypt all text of the chats. Close the window first."""
    from app.cli.chats_file import check_key, find_file, read_chats, rewrite
    from app.gui.chat.history.history_cipher import Cipher
    from app.gui.chat.history.history_conversion import Conversion

    node_home, out = _home(home), Output(as_json)
    file = find_file(node_home)
    chats = read_chats(file)
    if chats.encrypted and chats.swept:
        _show(out, chats, {"changed": False}, lambda: "The chats are already encrypted.")
        return
    key, place = asyncio.run(_key(node_home, make=not chats.encrypted))
    if key is None:
        raise Refused("history_key_gone", place=place, path=str(file))
    cipher, conversion = Cipher(key), Conversion.SEAL
    if chats.encrypted:
        check_key(file, cipher, place)
        conversion = Conversion.SWEEP
    rewritten = rewrite(file, conversion, cipher, _no_progress)
    sentence = f"Encrypted {_counts(rewritten)}. The key is {place}; without it, nobody can read the chats."
    _show(out, rewritten, {"changed": True, "key_place": place}, lambda: f"{sentence} {LATER}")


def decrypt(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Decrypt the chats. Close the window first."""
    from app.cli.chats_file import check_key, find_file, read_chats, rewrite
    from app.gui.chat.history.history_cipher import Cipher
    from app.gui.chat.history.history_conversion import Conversion

    node_home, out = _home(home), Output(as_json)
    file = find_file(node_home)
    chats = read_chats(file)
    if not chats.encrypted:
        _show(out, chats, {"changed": False}, lambda: "The chats are not encrypted.")
        return
    key, place = asyncio.run(_key(node_home, make=False))
    if key is None:
        raise Refused("history_key_gone", place=place, path=str(file))
    check_key(file, Cipher(key), place)
    rewritten = rewrite(file, Conversion.OPEN, Cipher(key), _no_progress)
    sentence = (
        f"Decrypted {_counts(rewritten)}: anyone who can read this disk can read the chats. The key is kept for "
        "copies of the file that are still encrypted."
    )
    _show(out, rewritten, {"changed": True, "key_place": place}, lambda: f"{sentence} {LATER}")


def _home(home: Path | None) -> Home:
    from app.machine.paths import Home

    return Home.at(home)


async def _key(home: Home, *, make: bool) -> tuple[bytes | None, str]:
    """Return the key and where it is stored. Raises Refused.

    The key comes from the running node or, if no node is running, from the key store.
    """
    from app.api.computer import HistoryKey
    from app.client import with_node
    from app.machine.secret_stores import ChatKey

    try:
        answer = await with_node(
            home, lambda node: node.post(KEY, answer=HistoryKey) if make else node.get(KEY, HistoryKey)
        )
        key, place = answer.key, answer.place
    except Unreachable:
        chat_key = ChatKey(home)
        key = await chat_key.make() if make else await chat_key.read()
        place = said(await chat_key.place())
    return (base64.b64decode(key) if key is not None else None), place


def _show(out: Output, chats: Chats, more: Json, words: Callable[[], str]) -> None:
    import msgspec

    out.result({**msgspec.to_builtins(chats), **more}, words)


def _state(chats: Chats, place: str | None, problem: str | None) -> str:
    summary = f"{_counts(chats)}, in {chats.file}."
    if not chats.encrypted:
        return f"{summary} Not encrypted."
    if problem is not None:
        return f"{summary} {problem}"
    remains = "" if chats.swept else " Traces of the old text may still be on the disk. Encrypt the chats again."
    return f"{summary} Encrypted; the key is {place}.{remains}"


def _counts(chats: Chats) -> str:
    n_chats = "1 chat" if chats.chats == 1 else f"{chats.chats} chats"
    n_messages = "1 message" if chats.messages == 1 else f"{chats.messages} messages"
    return f"{n_chats} with {n_messages}"


def _no_progress(done: int, of: int) -> None:
    """Show nothing, because even thousands of messages take only a second."""
