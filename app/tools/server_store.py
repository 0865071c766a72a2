"""The tool servers that the user added, in a file of this home. Their secrets are in the secret store."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets as chance
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec

from app.api.tools import MAX_NAME_CHARACTERS, MAX_SERVERS, Permission, ServerEdit
from app.core.errors import AppError, BadInput, DoesNotFit
from app.core.reasons import os_cause
from app.decoding import convert, decode
from app.machine.json_state import read_json_or_default
from app.machine.paths import Home, write_atomically
from app.machine.secret_stores import SecretMap

FILE = "tools.json"
SECRETS = "tool servers"  # the name of their entry in the secret store
SEPARATOR = "\x1f"
MAX_SECRETS_BYTES = 1 << 15
MARK_BYTES = 8
NAME_SIGNS = frozenset(" ._-")


class StoredPermission(msgspec.Struct, frozen=True, omit_defaults=True):
    """A permission that the user set for a tool, and the fingerprint of the tool at that time."""

    permission: Permission
    fingerprint: str = ""


class StoredServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool server without the values of its environment variables and headers, which are secrets.

    mark: a random text, made when the server is added or gets another command or address.
    """

    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()  # names only
    url: str = ""
    headers: tuple[str, ...] = ()  # names only
    on: bool = False
    tools: dict[str, StoredPermission] = {}
    mark: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """Return what distinguishes this server from all others, even from one added later under the same name."""
        return self.mark, self.command, self.arguments, self.url


class StoredServers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of the file."""

    servers: dict[str, StoredServer] = {}


@dataclass(frozen=True)
class KnownServer:
    """A server with its secrets, ready to be started."""

    name: str
    stored: StoredServer
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def starts_like(self, other: KnownServer) -> bool:
        """Return whether starting the other server would start the same program, or reach the same address."""
        return (self.stored.place, self.environment, self.headers) == (
            other.stored.place,
            other.environment,
            other.headers,
        )

    def redacted(self, text: str) -> str:
        """Return a text from the server without the secrets that the server was given."""
        for secret in sorted({*self.environment.values(), *self.headers.values()}, key=len, reverse=True):
            if len(secret) >= 4:
                text = text.replace(secret, "…")
        return text


class ServerStore:
    """The stored servers. Two processes may change them, so each change starts from the current content of the file."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()

    async def all(self) -> Mapping[str, StoredServer]:
        """Return the servers by name."""
        return (await asyncio.to_thread(self._read)).servers

    async def known(self, name: str) -> KnownServer:
        """Return a server with its secrets. Raises BadInput or Refused."""
        stored = _named(await self.all(), name)
        secrets = await self._secrets().all() if stored.environment or stored.headers else {}
        return KnownServer(
            name,
            stored,
            {key: secrets.get(_key(name, "env", key), "") for key in stored.environment},
            {key: secrets.get(_key(name, "header", key), "") for key in stored.headers},
        )

    async def save(self, edit: ServerEdit, was: str = "") -> None:
        """Add a server, which is off at first, or change one. Raises BadInput, Refused or DoesNotFit."""
        check(edit)
        async with self._lock:
            servers = dict(await self.all())
            before = _named(servers, was) if was else None
            if edit.name != was and edit.name in servers:
                raise BadInput("tool_server_taken", name=edit.name)
            if before is None and len(servers) >= MAX_SERVERS:
                raise BadInput("tool_servers_many", most=MAX_SERVERS)
            await self._save_secrets(edit, was)
            servers.pop(was, None)
            kept = before if before is not None and _same_place(before, edit) else None
            servers[edit.name] = StoredServer(
                command=edit.command,
                arguments=tuple(edit.arguments),
                environment=tuple(edit.environment),
                url=edit.url,
                headers=tuple(edit.headers),
                on=before is not None and before.on,
                # what was allowed was allowed to another program or address
                tools=kept.tools if kept is not None else {},
                mark=(kept.mark if kept is not None else "") or chance.token_hex(MARK_BYTES),
            )
            await self._write(servers)

    async def remove(self, name: str) -> None:
        """Forget a server and its secrets. Raises BadInput, Refused or DoesNotFit."""
        async with self._lock:
            servers = dict(await self.all())
            stored = _named(servers, name)
            if stored.environment or stored.headers:
                await self._secrets().change(lambda secrets: _without(secrets, name))
            del servers[name]
            await self._write(servers)

    async def change(self, name: str, how: Callable[[StoredServer], StoredServer]) -> None:
        """Change the stored data of a server. Raises BadInput or DoesNotFit."""
        async with self._lock:
            servers = dict(await self.all())
            servers[name] = how(_named(servers, name))
            await self._write(servers)

    async def _save_secrets(self, edit: ServerEdit, was: str) -> None:
        entered = {("env", key): value for key, value in edit.environment.items()}
        entered |= {("header", key): value for key, value in edit.headers.items()}
        if not entered and not was:
            return

        def changed(secrets: dict[str, str]) -> dict[str, str]:
            kept = {
                _key(edit.name, kind, key): secrets.get(_key(was, kind, key), "") if value is None else value
                for (kind, key), value in entered.items()
            }
            after = {**_without(secrets, was), **kept}
            if sum(len(key) + len(value.encode()) for key, value in after.items()) > MAX_SECRETS_BYTES:
                raise BadInput("tool_secrets_many", most_bytes=MAX_SECRETS_BYTES)
            return after

        await self._secrets().change(changed)

    def _secrets(self) -> SecretMap:
        return SecretMap(
            self._home, SECRETS, "tool_servers_locked"
        )  # not kept, because another process may have changed them

    def _read(self) -> StoredServers:
        return read_json_or_default(self._home.root / FILE, StoredServers, "the list of tool servers")

    async def _write(self, servers: Mapping[str, StoredServer]) -> None:
        path = self._home.root / FILE
        content = msgspec.json.format(msgspec.json.encode(StoredServers(dict(servers))), indent=2)
        try:
            await asyncio.to_thread(write_atomically, path, content)
        except OSError as error:
            raise DoesNotFit("settings_unsaved", path=str(path), why=os_cause(error)) from error


def check(edit: ServerEdit) -> None:
    """Check a server's description. Raises BadInput."""
    if bool(edit.command.strip()) == bool(edit.url.strip()):
        raise BadInput("tool_server_place", name=edit.name)
    if any("\0" in text for text in (edit.command, *edit.arguments, *map(str, edit.environment.values()))):
        raise BadInput("tool_server_place", name=edit.name)
    if any("=" in key or not key.strip() for key in edit.environment):
        raise BadInput("tool_variable_name", name=edit.name)
    for key, value in edit.headers.items():
        if not key.replace("-", "").isalnum() or not key.isascii() or set(value or "") & {"\r", "\n"}:
            raise BadInput("tool_header_name", name=edit.name)
    if edit.url:
        _check_address(edit)


def _check_address(edit: ServerEdit) -> None:
    """Refuse an invalid address, or one that would send headers unencrypted beyond the home. Raises BadInput."""
    try:
        parts = urlsplit(edit.url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise BadInput("tool_address_none", name=edit.name)
    if parts.scheme == "http" and not _is_near(host):
        raise BadInput("tool_address_plain", name=edit.name, host=host)


def _is_near(host: str) -> bool:
    """Return whether a host is this computer or in the home's network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost", ".lan", ".home.arpa")) or "." not in host


# The format of other apps


class _ForeignServer(msgspec.Struct):
    """A server in the form that other apps use. Unknown fields are ignored."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str | int | float | bool] = {}
    url: str = ""
    headers: dict[str, str] = {}


class _ForeignFile(msgspec.Struct, rename={"mcp_servers": "mcpServers"}):
    mcp_servers: dict[str, object] | None = None
    servers: dict[str, object] | None = None


def foreign_servers(text: str) -> tuple[list[ServerEdit], dict[str, AppError]]:
    """Return the servers in another app's `mcpServers` JSON, and why others cannot be used. Raises BadInput."""
    try:
        file = decode(text.strip(), _ForeignFile)
    except ValueError as error:
        raise BadInput("tool_import_unreadable", why=str(error)) from None
    entries = file.mcp_servers if file.mcp_servers is not None else file.servers
    if not entries:
        raise BadInput("tool_import_empty")
    edits: list[ServerEdit] = []
    refused: dict[str, AppError] = {}
    for entered, entry in entries.items():
        try:
            edits.append(_edit_of(entered, convert(entry, _ForeignServer)))
        except BadInput as error:
            refused[entered[:MAX_NAME_CHARACTERS]] = error
        except ValueError as error:
            refused[entered[:MAX_NAME_CHARACTERS]] = BadInput("tool_import_unreadable", why=str(error))
    return edits, refused


def _edit_of(entered: str, entry: _ForeignServer) -> ServerEdit:
    fields = {
        "name": _usable_name(entered),
        "command": entry.command,
        "arguments": entry.args,
        "environment": {key: _text(value) for key, value in entry.env.items()},
        "url": "" if entry.command else entry.url,
        "headers": {} if entry.command else entry.headers,
    }
    edit = convert(fields, ServerEdit)
    check(edit)
    return edit


def _usable_name(entered: str) -> str:
    """Return a name with all characters replaced except letters, digits and a few others."""
    name = "".join(sign if (sign.isascii() and sign.isalnum()) or sign in NAME_SIGNS else "-" for sign in entered)
    return name.strip(" ._-")[:MAX_NAME_CHARACTERS] or "server"


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(server: str, kind: str, name: str) -> str:
    return SEPARATOR.join((server, kind, name))


def _without(secrets: Mapping[str, str], server: str) -> dict[str, str]:
    return {key: value for key, value in secrets.items() if not server or key.split(SEPARATOR)[0] != server}


def _named(servers: Mapping[str, StoredServer], name: str) -> StoredServer:
    if name not in servers:
        raise BadInput("tool_server_unknown", name=name[:MAX_NAME_CHARACTERS])
    return servers[name]


def _same_place(before: StoredServer, edit: ServerEdit) -> bool:
    return (before.command, before.arguments, before.url) == (edit.command, tuple(edit.arguments), edit.url)
