"""The llama.cpp binding: functions, log and default parameters.

Only this module imports llama_cpp, which has no type annotations.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import types
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from backends.contract import (
    CPU_VARIANT,
    PROVED_ENGINES,
    DeviceUnusable,
    FamilyUnfit,
    StageError,
    UnprovedEngine,
    is_proved,
)
from backends.llamacpp import backend_libraries

SWITCH_SECONDS = 1e-4  # with Python's default, a thread that waits for the GIL delays a step by 40 ms


@cache
def load() -> Any:
    """Import the binding's C functions and redirect its log to stderr, once per process. Raises StageError."""
    _leave_out_the_rest()
    try:
        from llama_cpp import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise StageError(f"llama.cpp cannot be loaded: {error}", "llama_missing", error=str(error)) from None
    sys.setswitchinterval(SWITCH_SECONDS)
    llama_cpp.llama_log_set(_callback, ctypes.c_void_p(0))
    _load_processor(llama_cpp)
    llama_cpp.llama_backend_init()
    return llama_cpp


@cache
def load_mtmd() -> Any:
    """Import the binding's functions for pictures, and redirect their log as well. Raises StageError."""
    load()
    try:
        from llama_cpp import mtmd_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise StageError(f"mtmd cannot be loaded: {error}", "llama_missing", error=str(error)) from None
    mtmd_cpp.mtmd_helper_log_set(_callback, ctypes.c_void_p(0))
    mtmd_cpp.mtmd_log_set(_callback, ctypes.c_void_p(0))
    return mtmd_cpp


def libraries_folder(llama: Any) -> Path:
    """Return the folder of the engine's shared libraries."""
    return Path(llama.__file__).resolve().parent / "lib"


def cpu_variant() -> str:
    """Return the variant in use for the processor, such as `haswell`."""
    load()
    return _variant


_variant = ""


def _load_processor(llama: Any) -> None:
    """Load the code for this processor. Raises StageError if none of the engine's variants runs on it.

    This must be the first call. With nothing registered, llama.cpp itself looks for libraries next to the Python
    executable and in the current directory, and runs whatever code it finds there.
    """
    global _variant
    folder = libraries_folder(llama)
    variants = backend_libraries.cpu_variants(folder)
    for name in backend_libraries.in_order(variants, os.environ.get(CPU_VARIANT, "")):
        if _load_library(llama, variants[name]):
            _variant = name
            return
    raise StageError(f"llama.cpp has no code that runs on this processor in {folder}", "llama_no_processor")


@cache
def load_backend(path: Path) -> None:
    """Load the back end of a device, once, and register its devices. Raises DeviceUnusable with the reason."""
    llama = load()
    take_log()
    if not _load_library(llama, path):
        words = take_log().rpartition(f"{path}: ")[2]  # the system's loader and llama.cpp both name the file
        raise DeviceUnusable(
            f"llama.cpp cannot use {path.name}: {words}", "llama_no_backend", name=path.name, words=words
        )


def _load_library(llama: Any, path: Path) -> bool:
    """Load a back end and register its devices. Return whether it suits this machine."""
    if sys.platform == "win32":
        return register_library(llama, path)
    return bool(_function(llama, "ggml_backend_load", ctypes.c_void_p, ctypes.c_char_p)(str(path).encode()))


def register_library(llama: Any, path: Path) -> bool:
    """Load a back end as llama.cpp does, from a path that may contain any characters.

    On Windows, llama.cpp reads the path in the system's code page, so it finds nothing below a user named Jürgen.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        said.append(f"{path}: {error}".encode())
        return False
    score = getattr(library, "ggml_backend_score", None)
    if score is not None and not score():
        return False
    library.ggml_backend_init.restype = ctypes.c_void_p
    if not (registered := library.ggml_backend_init()):
        return False
    _function(llama, "ggml_backend_register", None, ctypes.c_void_p)(registered)
    return True


def _leave_out_the_rest() -> None:
    """Make the package importable without running its `__init__`, which would delay each worker's start by 0.12 s."""
    if "llama_cpp" not in sys.modules and (spec := util.find_spec("llama_cpp")):
        sys.modules["llama_cpp"] = util.module_from_spec(spec)


@cache
def llama_class() -> Any:
    """Return the binding's own `Llama` class, used as a reference for our results."""
    llama = load()
    # diskcache unpickles whatever it finds on disk and has no pinned version. We use no disk cache.
    sys.modules.setdefault("diskcache", types.ModuleType("diskcache"))
    package: Any = sys.modules["llama_cpp"]
    package.__spec__.loader.exec_module(package)
    llama.llama_log_set(_callback, ctypes.c_void_p(0))  # the package has replaced our log callback
    return package.Llama


def version() -> str:
    """Return the version of the binding, which also serves as the version of the engine."""
    from importlib import metadata  # takes an eighth of a worker's startup time and is rarely needed

    return metadata.version("llama-cpp-python")


def require_proved() -> None:
    """Raise UnprovedEngine unless this engine version is known to compute parts of models correctly."""
    if not is_proved(version()):
        proved = " or ".join(PROVED_ENGINES)
        words = f"this is llama-cpp-python {version()}, and proved is {proved}"
        raise UnprovedEngine(words, "llama_unproved", version=version(), proved=proved)


# Levels of ggml_log_level that explain a failure. Level 5 continues the previous line.
_WARN, _ERROR, _CONTINUED = 3, 4, 5
_last_level = 0


def _log(level: int, text: bytes, _user_data: int | None) -> None:
    """Write warnings and errors to stderr and drop all other messages, so the last lines explain why a worker died."""
    global _last_level
    if level != _CONTINUED:
        _last_level = level
    if b"buffer" in text and (match := _BUFFER.search(text)):
        name, n_bytes = match[1].decode("utf-8", "replace"), int(float(match[3]) * (1 << 20))
        _buffers[name] = _buffers.get(name, 0) + n_bytes
        if match[2] in _WORK:
            _work_buffers[name] = _work_buffers.get(name, 0) + n_bytes
    elif b"assigned to device" in text and (match := _ASSIGNED.search(text)):
        _layer_devices[int(match[1])] = match[2].decode("utf-8", "replace")
    elif _MOVED in text:
        _moved.append(text.decode("utf-8", "replace"))
    elif b"overridden" in text and (match := _OVERRIDDEN.search(text)):
        _overridden.append(match[1].decode("utf-8", "replace"))
    if _last_level in (_WARN, _ERROR):
        sys.stderr.write(text.decode("utf-8", "replace"))
        sys.stderr.flush()
        said.append(text)
        del said[:-LAST_WORDS]


_callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(_log)


LAST_WORDS = 20
LOADING = "error loading model"
_INNER = re.compile(r"^[\w ]*: (?:\w+: )*")  # names of llama.cpp's components and functions
said: list[bytes] = []


# llama.cpp reports where it has placed things only in its log.
_BUFFER = re.compile(rb":\s+(\S+)\s+(model|KV|RS|DSV4 \S+ state|compute|output) buffer size\s*=\s*([\d.]+) MiB")
_WORK = (b"compute", b"output")
_MOVED = b"cannot be used with preferred buffer type"
_OVERRIDDEN = re.compile(rb"tensor (\S+) .* buffer type overridden to")
_ASSIGNED = re.compile(rb"layer\s+(\d+) assigned to device ([^,]+),")
_buffers: dict[str, int] = {}
_work_buffers: dict[str, int] = {}
_moved: list[str] = []
_overridden: list[str] = []
_layer_devices: dict[int, str] = {}


def take_buffers() -> dict[str, int]:
    """Return the bytes allocated since the last call, by buffer type, such as `CPU`, `Vulkan0` or `Vulkan_Host`."""
    taken = dict(_buffers)
    _buffers.clear()
    return taken


def take_work_buffers() -> dict[str, int]:
    """Return the part of these bytes that is neither weights nor KV cache, since the last call, by buffer type."""
    taken = dict(_work_buffers)
    _work_buffers.clear()
    return taken


def layer_devices() -> tuple[str, ...]:
    """Return the name of the device that computes each layer of the model that was loaded last.

    The output matrix is the last entry.
    """
    return tuple(device for _, device in sorted(_layer_devices.items()))


def take_log() -> str:
    """Return and clear llama.cpp's latest warnings and errors."""
    text = b"".join(said).decode("utf-8", "replace").strip()
    said.clear()
    return text[-1000:]


def ggml(name: str, result: Any, *arguments: Any) -> Any:
    """Return a ggml function by its C name, for functions that the binding does not expose.

    Raises AttributeError if the function does not exist. The function comes from the library that libllama uses, not
    from `llama_cpp._ggml`: a wheel contains copies of libraries instead of symbolic links, so `_ggml` would load a
    second libggml with a registry of its own.
    """
    return _function(load(), name, result, *arguments)


def _function(llama: Any, name: str, result: Any, *arguments: Any) -> Any:
    for library in _ggml_libraries(llama):
        with suppress(AttributeError):
            function = library[name]  # a new object each time, unlike an attribute
            function.restype, function.argtypes = result, arguments
            return function
    raise AttributeError(f"llama.cpp has no {name}")


def _ggml_libraries(llama: Any) -> tuple[ctypes.CDLL, ...]:
    """Return the libraries to search for ggml functions.

    Except on Windows, looking up a symbol in libllama also searches the libraries that it depends on.
    """
    if sys.platform == "win32":
        folder = libraries_folder(llama)
        return tuple(ctypes.CDLL(str(folder / name)) for name in ("ggml-base.dll", "ggml.dll"))
    return (llama._lib,)


@dataclass(frozen=True, slots=True)
class LayerDevices:
    """The devices that compute a model's layers: the processor computes the first, then one device after another."""

    addresses: tuple[int, ...] = ()  # none: the processor computes all layers
    counts: tuple[int, ...] = ()  # the layers on each device; none: all layers are on the only one
    n_layers: int = 0  # of the model
    processor_experts: int = 0  # the layers, from the first one, whose experts the processor computes
    n_hidden: int = 0  # layers for speculation, which llama.cpp counts after the others
    shares_tensors: bool = False  # whether all devices hold a part of every matrix (CardSplit.TENSORS)
    n_first: int = 0  # if set, only the weights of so many first layers are on the device, for a check of these alone

    @property
    def processor_layers(self) -> int:
        return self.n_layers - sum(self.counts) if self.counts else 0

    @property
    def is_mixed(self) -> bool:
        return bool(self.processor_layers or self.processor_experts)

    @property
    def parts(self) -> tuple[int, ...]:
        """Return how many layers each device gets, where the output matrix counts as the last layer."""
        return (*self.counts[:-1], self.counts[-1] + self.n_hidden + 1) if self.counts else ()


PROCESSOR = LayerDevices()
SHARED = "Meta("  # how the names of llama.cpp's device and buffer for several devices that share tensors begin


class _Override(ctypes.Structure):
    """The C structure llama_model_tensor_buft_override."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def expert_pattern(layers: range) -> str:
    """Return the regular expression for the names of the experts' tensors in these layers."""
    return rf"^blk\.({'|'.join(map(str, layers))})\.ffn_(up|down|gate|gate_up)_exps"


def later_pattern(n_layers: int, n_first: int) -> str:
    """Return the regular expression for the names of all tensors that do not belong to the first layers."""
    later = "|".join(map(str, range(n_first, n_layers)))
    return rf"^(blk\.({later})\.|output)" if later else "^output"


def _in_main_memory(on: LayerDevices) -> Any:
    """Return the array that keeps the tensors not meant for a device in main memory, or None if there are none."""
    patterns = []
    if on.processor_experts > on.processor_layers:
        patterns.append(expert_pattern(range(on.processor_layers, on.processor_experts)))
    if on.n_first:
        patterns.append(later_pattern(on.n_layers, on.n_first))
    if not patterns:
        return None
    main_memory = ggml("ggml_backend_cpu_buffer_type", ctypes.c_void_p)()
    listed = [_Override(pattern.encode(), main_memory) for pattern in patterns]
    return (_Override * (len(listed) + 1))(*listed, _Override(None, None))


def load_model(
    path: str,
    on: LayerDevices = PROCESSOR,
    *,
    vocabulary_only: bool = False,
    mapped: bool = False,
    without_weights: bool = False,
) -> Any:
    """Open a GGUF file. Raises StageError with llama.cpp's message.

    without_weights: read only the vocabulary and the sizes. mapped: read the weights in place from the file, which
    takes no memory of our own. This suits a model that computes only once.
    """
    llama = load()
    params = llama.llama_model_default_params()
    params.vocab_only = vocabulary_only
    params.no_alloc = without_weights
    # An empty list stands for the processor. Without a list, llama.cpp uses every graphics card.
    listed = (ctypes.c_void_p * (len(on.addresses) + 1))(*on.addresses, None)
    params.devices = ctypes.cast(listed, ctypes.c_void_p)
    params.n_gpu_layers = (sum(on.parts) or -1) if on.addresses else 0
    params.split_mode = llama.LLAMA_SPLIT_MODE_NONE
    if on.shares_tensors:
        params.split_mode = llama.LLAMA_SPLIT_MODE_TENSOR
    elif len(on.addresses) > 1:
        params.split_mode = llama.LLAMA_SPLIT_MODE_LAYER
        params.tensor_split = (ctypes.c_float * llama.LLAMA_MAX_DEVICES)(*on.parts)
    overrides = _in_main_memory(on) if on.addresses else None  # kept alive until the model is loaded
    if overrides is not None:
        params.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)
    params.no_host = on.is_mixed  # pinned memory is scarce, and no step copies these weights to a device
    # Not mapped: our own memory can use huge pages (process.use_huge_pages) and is counted as ours, and no step waits
    # for the disk because the system evicted a page.
    params.load_mode = llama.LLAMA_LOAD_MODE_MMAP if mapped else llama.LLAMA_LOAD_MODE_NONE
    repacks = not (on.addresses or mapped)
    params.use_extra_bufts = repacks and should_repack(llama.llama_print_system_info().decode("utf-8", "replace"))
    take_log()
    take_buffers()
    take_work_buffers()
    _moved.clear()
    _layer_devices.clear()
    _overridden.clear()
    model = llama.llama_model_load_from_file(path.encode(), params)
    if not model:
        if words := why_not(take_log()):
            raise StageError(f"llama.cpp cannot load it: {words}", "llama_cannot_load", words=words)
        raise StageError("llama.cpp cannot load it: it gives no reason", "llama_silent")
    if on.addresses and not on.n_first and (left := _left_behind()):
        llama.llama_model_free(model)
        raise FamilyUnfit(f"the device cannot compute with {left.tensor}", "device_tensor", **left.facts)
    n_hidden = len(_layer_devices) - 1 - on.n_layers
    if on.counts and n_hidden > on.n_hidden:  # known only now
        llama.llama_model_free(model)
        return load_model(path, replace(on, n_hidden=n_hidden))
    return model


_MOVE = re.compile(r"tensor '([^']*)' .*\(and (\d+) others\) cannot be used with preferred buffer type ([^,\s]+)")


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A tensor that llama.cpp has left in main memory, and the buffer type of the device that it was meant for."""

    tensor: str
    buffer_type: str

    @property
    def facts(self) -> dict[str, str]:
        return {"tensor": self.tensor, "device": self.buffer_type}


def _left_behind() -> LeftBehind | None:
    """Return a tensor that llama.cpp has left in main memory unasked, or None.

    It does so silently with tensors that are too large for the device or of an unsupported type. The token embedding
    always stays in main memory. llama.cpp counts the experts that stay there on purpose, but names only the first.
    """
    for line in _moved:
        if match := _MOVE.search(line):
            left = 1 + int(match[2]) - (match[1] == "token_embd.weight")
            if left != len(_overridden):
                return LeftBehind(match[1], match[3])
    return None


def should_repack(engine: str) -> bool:
    """Return whether llama.cpp should repack weights to compute several rows faster. engine: llama.cpp's system info.

    With AVX-512, repacking is not worthwhile: prompts slow down from 4.3 to 6.7 ms per row, and a step of eight rows
    only speeds up from 128 to 115 ms. Without AVX-512, it is: such a step speeds up from 29 to 20 ms per row, and
    prompts slow down from 9.1 to 11.3 ms per row (one Zen 5 core, a model with 0.75 B parameters).
    """
    return "AVX512 = 1" not in engine


def why_not(words: str) -> str:
    """Extract the reason for a failed model load from llama.cpp's output."""
    for line in words.splitlines():
        _, library, cause = line.rpartition(LOADING)
        if library:
            return _INNER.sub("", cause).strip().rstrip(".")
    return words.strip()


def position_planes(model: Any) -> int:
    """Return how many positions llama.cpp expects per input hidden state (llama_hparams::n_pos_per_embd)."""
    llama = load()
    several = (llama.LLAMA_ROPE_TYPE_MROPE, llama.LLAMA_ROPE_TYPE_IMROPE)
    return 4 if llama.llama_model_rope_type(model) in several else 1


def text_of(function: Any, *arguments: Any) -> str:
    """Call a C function that writes a string to a buffer and takes the buffer and its size as its last arguments.

    Return the string, or an empty string if the call fails.
    """
    size = function(*arguments, None, 0)
    if size < 0:
        return ""
    buffer = ctypes.create_string_buffer(size + 1)
    function(*arguments, buffer, size + 1)
    return buffer.value.decode("utf-8", "replace")
