"""The contract of the process that runs the tool servers (MCP): its requests, answers and notifications.

The window and that process exchange one JSON object a line. Each answer has the number of its request.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.api.responses import SentError

Permission = Literal["ask", "always", "never"]
ServerStatus = Literal["off", "ready", "starting", "running", "failed"]  # ready: on, and started when needed

MAX_SERVERS = 32
MAX_NAME_CHARACTERS = 40
MAX_LINE_BYTES = 16 << 20  # of a request or an answer of the process
ServerName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}$")]
Line = Annotated[str, Meta(max_length=4096)]
Secret = Annotated[str, Meta(max_length=4096)]


class ServerEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool server as a person describes it: a program on this computer, or an address.

    The values of `environment` and `headers` are secrets. None keeps the value that is stored.
    """

    name: ServerName
    command: Line = ""
    arguments: Annotated[list[Line], Meta(max_length=64)] = []
    environment: Annotated[dict[Line, Secret | None], Meta(max_length=32)] = {}
    url: Line = ""
    headers: Annotated[dict[Line, Secret | None], Meta(max_length=16)] = {}


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server, and what the user allows it to do.

    fingerprint: identifies its server, its description and the schema of its arguments. changed: whether the tool was
    always allowed but has changed since, so that the user is asked again.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    permission: Permission = "ask"
    fingerprint: str = ""
    changed: bool = False


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A tool server and its state. Only the names of its secrets are given."""

    name: str
    command: str = ""
    arguments: list[str] = []
    environment: list[str] = []
    url: str = ""
    headers: list[str] = []
    on: bool = False
    status: ServerStatus = "off"
    error: SentError | None = None  # why it failed
    tools: list[ServerTool] = []  # as they were listed last
    n_left_out: int = 0  # number of tools beyond the limit


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a model may call. `name` is unique among all offered tools."""

    name: str
    server: str
    tool: str
    description: str = ""
    parameters: dict[str, Any] = {}
    permission: Permission = "ask"
    fingerprint: str = ""


# Requests


class ListServers(msgspec.Struct, frozen=True, tag_field="do", tag="list"):
    """A request for all servers."""


class SaveServer(msgspec.Struct, frozen=True, tag_field="do", tag="save"):
    """A server to add or to replace. `was` is its name before, or "" for a new one."""

    server: ServerEdit
    was: str = ""


class RemoveServer(msgspec.Struct, frozen=True, tag_field="do", tag="remove"):
    """A server to forget, with its secrets."""

    name: str


class SwitchServer(msgspec.Struct, frozen=True, tag_field="do", tag="switch"):
    """A switch for whether chats may use a server."""

    name: str
    on: bool


class TestServer(msgspec.Struct, frozen=True, tag_field="do", tag="test"):
    """A server to restart, whether it is on or off, in order to see its tools."""

    __test__ = False  # no test of pytest's
    name: str


class SetPermission(msgspec.Struct, frozen=True, tag_field="do", tag="permit"):
    """A choice of what a tool may do without being asked about.

    fingerprint: that of the tool that was shown; "always" is refused if the tool has changed since.
    """

    server: str
    tool: str
    permission: Permission
    fingerprint: str = ""


class ImportServers(msgspec.Struct, frozen=True, tag_field="do", tag="import"):
    """The text of another app's `mcpServers` file."""

    text: Annotated[str, Meta(max_length=1 << 20)]


class OpenTools(msgspec.Struct, frozen=True, tag_field="do", tag="open"):
    """The servers that a chat uses, which are started if necessary."""

    servers: list[str]


class CallTool(msgspec.Struct, frozen=True, tag_field="do", tag="call"):
    """A call that a person has allowed. `arguments` is a JSON object as text.

    fingerprint: that of the tool that was shown; the call is refused if the tool has changed since.
    """

    server: str
    tool: str
    arguments: str
    fingerprint: str = ""


class CancelCall(msgspec.Struct, frozen=True, tag_field="do", tag="cancel"):
    """The number of a request that is no longer needed."""

    number: int


ToolRequest = (
    ListServers
    | SaveServer
    | RemoveServer
    | SwitchServer
    | TestServer
    | SetPermission
    | ImportServers
    | OpenTools
    | CallTool
    | CancelCall
)


class NumberedRequest(msgspec.Struct, frozen=True):
    """A request as it is sent."""

    number: int
    request: ToolRequest


# Answers


class Servers(msgspec.Struct, frozen=True):
    """All servers, in alphabetical order."""

    servers: list[Server] = []


class Imported(msgspec.Struct, frozen=True):
    """The names of the servers that were imported, and the ones that could not be, with the reason."""

    names: list[str] = []
    refused: dict[str, SentError] = {}


class Offered(msgspec.Struct, frozen=True):
    """The tools of the requested servers, and the servers that could not be started."""

    tools: list[OfferedTool] = []
    failed: dict[str, SentError] = {}


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a tool. Only its text is given to the model."""

    text: str = ""
    is_error: bool = False
    n_pictures: int = 0  # pictures and sounds that were left out
    n_left_out: int = 0  # characters beyond the limit
    seconds: float = 0.0


class ToolLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A line from the process: the answer to a request, or a notification that the servers have changed."""

    number: int = 0
    answer: Any = None  # of the type that belongs to the request
    error: SentError | None = None
    news: Servers | None = None
