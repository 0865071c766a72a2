"""The llama.cpp binding: functions, log and default parameters.

Only this module imports llama_cpp, which has no type annotations.
"""

from __future__ import annotations

import ctypes
import re
import sys
import types
from contextlib import suppress
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from backends.contract import PROVED_ENGINES, StageError, UnprovedEngine, is_proved

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
    llama_cpp.llama_backend_init()
    return llama_cpp


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
    for library in _ggml_libraries(load()):
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
        folder = Path(llama.__file__).resolve().parent / "lib"
        return tuple(ctypes.CDLL(str(folder / name)) for name in ("ggml-base.dll", "ggml.dll"))
    return (llama._lib,)


def load_model(path: str, *, vocabulary_only: bool = False) -> Any:
    """Open a GGUF file. Raises StageError with llama.cpp's message."""
    llama = load()
    params = llama.llama_model_default_params()
    params.vocab_only = vocabulary_only
    params.n_gpu_layers = 0
    # Not mapped: our own memory can use huge pages (process.use_huge_pages) and is counted as ours, and no step waits
    # for the disk because the system evicted a page.
    params.load_mode = llama.LLAMA_LOAD_MODE_NONE
    params.use_extra_bufts = should_repack(llama.llama_print_system_info().decode("utf-8", "replace"))
    take_log()
    model = llama.llama_model_load_from_file(path.encode(), params)
    if not model:
        if words := why_not(take_log()):
            raise StageError(f"llama.cpp cannot load it: {words}", "llama_cannot_load", words=words)
        raise StageError("llama.cpp cannot load it: it gives no reason", "llama_silent")
    return model


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
