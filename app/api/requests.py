"""The bodies of requests to the loopback API. Every size is limited, and unknown fields are rejected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.core.lending.policy import CARD_HOT_MOST, LINK_MOST_MBIT
from backends.contract import KvType, Sampling
from backends.readers.messages import MAX_PICTURE_BYTES, MOST_PICTURES

MAX_TOOLS, MAX_CALLS = 128, 64  # offered with a request, and made in one answer

Name = Annotated[str, Meta(min_length=1, max_length=100)]
# the name of a model, or `MODEL@MACHINE` for one that another machine has loaded
ModelReference = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=1, le=1 << 24)]
Text = Annotated[str, Meta(max_length=4 << 20)]
Picture = Annotated[bytes, Meta(min_length=1, max_length=MAX_PICTURE_BYTES)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
AccessNames = Annotated[list[Annotated[str, Meta(min_length=1, max_length=300)]], Meta(max_length=64)]
CardKey = Annotated[str, Meta(min_length=1, max_length=200)]
ToolName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
LinkMbit = Annotated[int, Meta(ge=0, le=LINK_MOST_MBIT)]


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base class of all request bodies."""


class OpenPairing(Request, frozen=True):
    role: Literal["lend", "guest", "use_and_lend", "admin"] = "use_and_lend"


class Join(Request, frozen=True):
    address: Annotated[str, Meta(max_length=260)]  # an address or a name; "" for the only open pairing window
    code: Annotated[str, Meta(max_length=32)]


class ChangeLending(Request, frozen=True):
    """The lending rules to change. Omitted rules are unchanged.

    The fields are those of `Rules` in app/core/lending/policy.py.
    """

    on: bool | msgspec.UnsetType = msgspec.UNSET
    memory_bytes: Annotated[int, Meta(ge=0, le=1 << 50)] | msgspec.UnsetType | None = msgspec.UNSET
    devices: Annotated[list[Name], Meta(max_length=16)] | msgspec.UnsetType = msgspec.UNSET
    idle_s: Annotated[float, Meta(ge=0, le=7 * 86400)] | msgspec.UnsetType = msgspec.UNSET
    hours: Annotated[str, Meta(max_length=400)] | msgspec.UnsetType = msgspec.UNSET
    battery_percent: Annotated[int, Meta(ge=0, le=100)] | msgspec.UnsetType = msgspec.UNSET
    programs: Annotated[list[Name], Meta(max_length=64)] | msgspec.UnsetType = msgspec.UNSET
    gpu: bool | msgspec.UnsetType = msgspec.UNSET
    drain_s: Annotated[float, Meta(ge=0, le=600)] | msgspec.UnsetType = msgspec.UNSET
    threads: Annotated[int, Meta(ge=0, le=1024)] | msgspec.UnsetType = msgspec.UNSET
    hot: bool | msgspec.UnsetType = msgspec.UNSET
    hot_celsius: Annotated[int, Meta(ge=50, le=105)] | msgspec.UnsetType = msgspec.UNSET
    screen: bool | msgspec.UnsetType = msgspec.UNSET
    network: bool | msgspec.UnsetType = msgspec.UNSET
    link_mbit: LinkMbit | msgspec.UnsetType = msgspec.UNSET
    limit_bytes: Annotated[int, Meta(ge=0, le=1 << 50)] | msgspec.UnsetType = msgspec.UNSET
    card_celsius: Annotated[int, Meta(ge=0, le=CARD_HOT_MOST)] | msgspec.UnsetType = msgspec.UNSET  # 0, or at least 50


class ChangeCards(Request, frozen=True):
    """The limits for graphics cards to change. Omitted limits are unchanged."""

    off: Annotated[list[CardKey], Meta(max_length=64)] | msgspec.UnsetType = msgspec.UNSET  # all that must not compute
    memory_percent: Annotated[int, Meta(ge=10, le=100)] | msgspec.UnsetType = msgspec.UNSET
    card_only: bool | msgspec.UnsetType = msgspec.UNSET


class PauseLending(Request, frozen=True):
    seconds: Annotated[float, Meta(gt=0, le=366 * 86400)] | None = None  # None for a pause until resumed
    at_once: bool = False


class ChooseAutostart(Request, frozen=True):
    on: bool


class ChangeSettings(Request, frozen=True):
    """The settings to change. Omitted settings are unchanged. Most changes take effect at the next start."""

    port: Annotated[int, Meta(ge=0, le=65535)] | msgspec.UnsetType = msgspec.UNSET
    discovery: bool | msgspec.UnsetType = msgspec.UNSET
    interfaces: Annotated[list[Name], Meta(max_length=32)] | msgspec.UnsetType = msgspec.UNSET
    look_for_updates: bool | msgspec.UnsetType = msgspec.UNSET  # this and the next fields take effect at once
    share_models: bool | msgspec.UnsetType = msgspec.UNSET
    exact: bool | msgspec.UnsetType = msgspec.UNSET
    answer_household: bool | msgspec.UnsetType = msgspec.UNSET
    ask_household: bool | msgspec.UnsetType = msgspec.UNSET


class ChangePrompts(Request, frozen=True):
    """The changes to how computed prompts are kept on this computer's disk. Omitted fields stay as they are."""

    on: bool | msgspec.UnsetType = msgspec.UNSET
    most_bytes: Annotated[int, Meta(ge=64 << 20, le=1 << 50)] | msgspec.UnsetType | None = msgspec.UNSET


class InstallUpdate(Request, frozen=True):
    """The folder with the update, or None to get it from the address of the build."""

    path: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    anyway: bool = False  # install from the folder even if connected machines would not understand the new version


class AddEnginePack(Request, frozen=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096)]  # a folder or an archive on this computer


class PreferEngine(Request, frozen=True):
    """The engine to prefer, and the folder to import it from: "" for llama.cpp and for an installed engine."""

    engine: Literal["llamacpp", "pytorch", "mlx"]
    folder: Annotated[str, Meta(max_length=4096)] = ""
    if_faster: bool = False  # only where it was measured to be faster than llama.cpp


class InstallEngine(Request, frozen=True):
    """The engine to install and prefer, and a folder with its wheels: "" to download them."""

    engine: Literal["pytorch", "mlx"]
    wheels: Annotated[str, Meta(max_length=4096)] = ""


class RemoveEngine(Request, frozen=True):
    engine: Literal["pytorch", "mlx"]


class CopyEnginePack(Request, frozen=True):
    """The pack to copy, with everything that a person has read about it and confirmed. `sha256` is of its pack.json."""

    machine: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    pack: Annotated[str, Meta(min_length=1, max_length=200)]
    built: Annotated[str, Meta(max_length=10)]
    size_bytes: Annotated[int, Meta(ge=1)]


class ExportEnginePack(Request, frozen=True):
    """The installed pack to write, and the new file on this computer. An existing one is replaced only if wanted."""

    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    replace: bool = False


class RollBackEngine(Request, frozen=True):
    backend: Name


class TestEngines(Request, frozen=True):
    """The back end whose packs to test, or None for all packs in use."""

    backend: Name | None = None


class ChooseFolder(Request, frozen=True):
    """The folder in which to store models. An empty path means the default folder in the node's home."""

    path: Annotated[str, Meta(max_length=4096)]
    move: bool = False
    new: bool = False  # create the folder if it does not exist


class PreferInterface(Request, frozen=True):
    """The interface of this computer to use for connections to a machine. None means the best interface."""

    interface: Annotated[str, Meta(min_length=1, max_length=128)] | None


class ChangeApi(Request, frozen=True):
    """The Chat API settings to change, which takes effect immediately. Omitted settings are unchanged."""

    on: bool | msgspec.UnsetType = msgspec.UNSET
    port: Annotated[int, Meta(ge=1024, le=65535)] | msgspec.UnsetType = msgspec.UNSET
    may_load: bool | msgspec.UnsetType = msgspec.UNSET
    ollama_open: bool | msgspec.UnsetType = msgspec.UNSET
    lan: bool | msgspec.UnsetType = msgspec.UNSET
    add_host_names: AccessNames = []
    remove_host_names: AccessNames = []
    add_origins: AccessNames = []
    remove_origins: AccessNames = []
    at_once: Annotated[int, Meta(ge=1, le=32)] | msgspec.UnsetType = msgspec.UNSET
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] | msgspec.UnsetType = msgspec.UNSET


class ChangePhones(Request, frozen=True):
    """The switch that lets phones and tablets chat here."""

    on: bool


class LimitKey(Request, frozen=True):
    """The limits for one key. None means that the limit for all keys applies."""

    name: Annotated[str, Meta(max_length=100)]
    at_once: Annotated[int, Meta(ge=1, le=32)] | None = None
    tokens_a_minute: Annotated[int, Meta(ge=0, le=1 << 30)] | None = None


class AddUpstream(Request, frozen=True):
    """Another OpenAI-compatible server to add. It receives requests only while it is on."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
    url: Annotated[str, Meta(min_length=1, max_length=500)]
    models: Annotated[dict[Name, Name], Meta(min_length=1, max_length=64)]
    cap_tokens: Annotated[int, Meta(ge=1, le=1 << 50)]
    key: Annotated[str, Meta(max_length=1000)] = ""
    certificate: Annotated[str, Meta(max_length=1 << 14)] = ""


class ChangeUpstream(Request, frozen=True):
    on: bool | None = None
    cap_tokens: Annotated[int, Meta(ge=1, le=1 << 50)] | None = None
    forget_spent: bool = False
    chats: bool | None = None
    continues: bool | None = None


class MeasureUpstream(Request, frozen=True):
    """A measurement of a server, which costs tokens. Without a model, the server's first one is measured."""

    model: Annotated[str, Meta(max_length=200)] = ""


class ApiKey(Request, frozen=True):
    name: Annotated[str, Meta(max_length=100)] = "default"


class DialAddress(Request, frozen=True):
    address: Annotated[str, Meta(min_length=1, max_length=260)]


class RenameMachine(Request, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=64)]


class SetRoles(Request, frozen=True):
    roles: Annotated[list[Literal["admin", "host", "lender", "guest"]], Meta(max_length=4)]


class Import(Request, frozen=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    name: Name | None = None


class StartDownload(Request, frozen=True):
    repository: Name
    file: Annotated[str, Meta(min_length=1, max_length=1000)]
    revision: Name | None = None
    name: Name | None = None
    machine: Hash | None = None  # ID of the machine from which it is copied; None for the hub
    sha256: Hash | None = None  # the hash of the file, if the catalog does not state it


class MoveDownload(Request, frozen=True):
    """A new place of a download in the list. None moves it to the end."""

    before: Name | None = None  # ID of the download that it runs before


class FindCopies(Request, frozen=True):
    """A search for machines in the household that have this file. `sha256` has the same meaning as in StartDownload."""

    repository: Name
    file: Annotated[str, Meta(min_length=1, max_length=1000)]
    revision: Name | None = None
    sha256: Hash | None = None


class SetToken(Request, frozen=True):
    token: Annotated[str, Meta(max_length=1000)]


class MeasureModel(Request, frozen=True):
    model: Name
    one_by_one: bool = False  # measure machines one after the other, for nodes that share a computer
    only_here: bool = False  # measure this machine only
    known_only: bool = False  # measure nothing, and return known speeds only


class PlanModel(Request, frozen=True):
    model: Name
    context: Count | None = None
    users: Annotated[int, Meta(ge=1, le=64)] | None = None
    split: Annotated[list[int], Meta(min_length=1, max_length=64)] | None = None
    by_program: bool = False  # whether a program, such as the demo, chose `split`, and not a person
    shape: Literal["one", "split", "replicas"] | None = None  # None for the best one for this number of users
    measure: bool | None = None  # measure the machines first; None measures them for a load without `split`
    again: bool = False  # with `measure`: also measure what is known already
    without: Annotated[list[Name], Meta(max_length=64)] = []  # ids of machines to exclude
    kv: KvType = KvType.F16
    # the format of hidden states on the wire; auto: f16, or q8 if that makes requests clearly faster
    number: Literal["auto", "f16", "f32", "q8"] = "auto"
    # compute with the same processor instructions on all computers; None for the choice in the settings
    exact: bool | None = None
    engine: Literal["", "llamacpp", "pytorch", "mlx"] = (
        ""  # for all machines that have it; "" for their owners' choices
    )
    beside: bool = False  # keep other loaded models
    anyway: bool = False  # let this machine use all of its memory, beyond its own limit


class Sketch(Request, frozen=True, kw_only=True):
    """The facts that a catalog states about a model file that is not on this computer."""

    key: Annotated[str, Meta(min_length=1, max_length=400)]
    file_bytes: Annotated[int, Meta(ge=1, le=1 << 50)]
    architecture: Annotated[str, Meta(max_length=100)] = ""
    n_layers: Annotated[int, Meta(ge=1, le=1024)] | None = None
    kv_bytes_per_token: Annotated[int, Meta(ge=1, le=1 << 30)] | None = None
    context_length: Count = 1 << 24
    splits: bool = True
    quantization: Annotated[str, Meta(max_length=100)] = ""
    parameters: Annotated[int, Meta(ge=1, le=1 << 50)] | None = None
    active_parameters: Annotated[int, Meta(ge=1, le=1 << 50)] | None = None


class JudgeModels(Request, frozen=True):
    """A request for verdicts on whether these models would fit.

    place: whether to also plan where the layers would go and forecast the speed. forecast: whether to return the
    forecast speed without its plan. measure: whether to first measure machines that have not been measured on similar
    layers.
    """

    sketches: Annotated[list[Sketch], Meta(max_length=400)]
    context: Count | None = None
    users: Annotated[int, Meta(ge=1, le=64)] | None = None
    without: Annotated[list[Name], Meta(max_length=64)] = []
    kv: KvType = KvType.F16
    place: bool = False
    forecast: bool = False
    measure: bool = False


class LoadModel(PlanModel, frozen=True):
    first: bool = True  # make it the model that answers questions without a model name
    # the name of a smaller model that writes ahead on this machine, or "auto" to choose one if it fits
    draft: Name | None = None


class UnloadModel(Request, frozen=True):
    """The model to unload. None means all loaded models."""

    model: Name | None = None


class UndoMove(Request, frozen=True):
    """The model whose layers return to where they were before they moved by themselves. None means the first one."""

    model: Name | None = None


class CalledTool(Request, frozen=True):
    """A call that the model made earlier in the conversation. `arguments` is a JSON object as text."""

    id: Annotated[str, Meta(max_length=128)]
    name: ToolName
    arguments: Text


class Message(Request, frozen=True, omit_defaults=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: Text
    thought: Text = ""  # the reasoning that preceded an answer
    # PNG, JPEG, WebP or GIF files that come before the text of a user's message, in base64
    pictures: Annotated[list[Picture], Meta(max_length=MOST_PICTURES)] = []
    tool_calls: Annotated[list[CalledTool], Meta(max_length=MAX_CALLS)] = []  # of an answer
    tool_call_id: Annotated[str, Meta(max_length=128)] = ""  # of the call whose result a tool's message is


class Tool(Request, frozen=True):
    """A tool that the model may call. `parameters` is the JSON schema of its arguments."""

    name: ToolName
    description: Annotated[str, Meta(max_length=1 << 14)] = ""
    parameters: dict[str, Any] = {}


class SamplingValues(Request, frozen=True):
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.8
    top_k: Annotated[int, Meta(ge=0, le=1 << 20)] = 40
    top_p: Annotated[float, Meta(ge=0, le=1)] = 0.95
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.05
    repeat_penalty: Annotated[float, Meta(ge=0, le=10)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=(1 << 32) - 2)] | None = None
    logit_bias: Annotated[list[tuple[int, float]], Meta(max_length=300)] = []

    def sampling(self, chance: int) -> Sampling:
        """Return these values with their own seed or, if they have none, with the seed `chance`."""
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            seed=chance if self.seed is None else self.seed,
            logit_bias=tuple(self.logit_bias),
        )


class CountTokens(Request, frozen=True):
    """A text whose tokens are to be counted.

    If `model` is None, the model that answers requests without a model name counts them.
    """

    text: Text
    model: Name | None = None


class Ask(Request, frozen=True, omit_defaults=True):
    """A request for one answer. Exactly one of `prompt`, `prompt_ids` and `messages` is set."""

    prompt: Text | None = None
    prompt_ids: Annotated[list[int], Meta(min_length=1, max_length=1 << 20)] | None = None
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)] | None = None
    raw: bool = False
    model: ModelReference | None = None
    max_tokens: Count | None = None
    stop: Annotated[list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(max_length=8)] = []
    conversation: Name | None = None
    # Unix time at which the chat began, because its template may contain the date
    begun_at: Annotated[float, Meta(ge=0, le=1 << 35)] | None = None
    ignore_end: bool = False  # for benchmarks that need exactly max_tokens
    guesses: bool = True  # let idle machines speculate on the next tokens
    sampling: SamplingValues = SamplingValues()
    think: bool | None = None  # reason before answering; None leaves it to the template of the model
    effort: Annotated[str, Meta(max_length=32)] = ""  # low, medium or high
    think_tokens: Annotated[int, Meta(ge=0, le=1 << 20)] | None = None  # maximum tokens of reasoning
    # tools that the answer may call; whoever asks calls them and sends the results with the next request
    tools: Annotated[list[Tool], Meta(max_length=MAX_TOOLS)] = []
    must_call: Annotated[str, Meta(max_length=64)] | None = None  # "" for any of the tools, or the name of one
