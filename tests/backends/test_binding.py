"""Tests of the message if the engine was never compiled."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backends.contract import StageError
from backends.llamacpp import binding


def test_an_engine_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(StageError, match="cannot be loaded: "):
        binding.load.__wrapped__()


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (
            "load: dummy tokens\nx: error loading model: check_dims: tensor 'a' not found\nx: failed.",
            "tensor 'a' not found",
        ),
        (
            "x: error loading model: error loading model hyperparameters: key not found: a.b\nx: failed",
            "key not found: a.b",
        ),
        ("llama_model_load: error loading model: unknown model architecture: 'x'",
         "unknown model architecture: 'x'"),
        ("gguf_init_from_file: failed to open", "gguf_init_from_file: failed to open"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_has_one_cause(words: str, cause: str) -> None:
    assert binding.why_not(words) == cause


@pytest.mark.parametrize(
    ("engine", "rearranged"),
    [
        ("CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | REPACK = 1 | ", True),
        ("CPU : AVX2 = 1 | AVX512 = 1 | AVX512_VNNI = 1 | REPACK = 1 | ", False),
        ("CPU : NEON = 1 | DOTPROD = 1 | REPACK = 1 | ", True),
    ],
)
def test_weights_stay_as_they_lie_where_the_engine_has_avx_512(engine: str, rearranged: bool) -> None:
    assert binding.should_repack(engine) is rearranged


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_there_is_one_libggml_in_a_process() -> None:
    """A wheel holds copies of it under several names. Each copy would have a registry of its own."""
    program = (
        "import ctypes\n"
        "from backends.llamacpp import binding\n"
        "assert binding.ggml('ggml_backend_dev_count', ctypes.c_size_t)() > 0\n"
        "binding.ggml('ggml_nbytes', ctypes.c_size_t, ctypes.c_void_p)\n"
        "print(open('/proc/self/maps').read())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    files = {line.split()[-1] for line in done.stdout.splitlines() if ".so" in line}
    names = sorted(Path(file).name.partition(".")[0] for file in files)
    assert [name for name in names if name in ("libggml", "libggml-base")] == ["libggml", "libggml-base"]


REGISTER = """
import ctypes, shutil, sys
from pathlib import Path
from backends.llamacpp import backend_libraries, binding
llama = binding.load()
variants = backend_libraries.cpu_variants(binding.libraries_folder(llama))
name = next(backend_libraries.in_order(variants))
copy = Path(sys.argv[1]) / variants[name].name
shutil.copyfile(variants[name], copy)
count = binding.ggml("ggml_backend_dev_count", ctypes.c_size_t)
before = count()
print(binding.register_library(llama, copy), count() - before)
print(binding.register_library(llama, copy.with_name("missing.so")), binding.take_log())
"""


def test_a_back_end_below_a_folder_of_any_name_is_registered(tmp_path: Path) -> None:
    """Load what llama.cpp's own function would not find on Windows."""
    folder = tmp_path / "Jürgen Ελένη 花子"
    folder.mkdir()
    words = [sys.executable, "-c", REGISTER, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=True)
    registered, missing = done.stdout.splitlines()
    assert registered == "True 1"
    assert missing.startswith("False ")
    assert "missing.so: " in missing


def test_a_function_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_function"):
        binding.ggml("no_such_function", ctypes.c_int)


MOVED = (
    "done_getting_tensors: tensor '{}' (q4_K) (and {} others) cannot be used with preferred buffer type Vulkan0, "
    "using CPU instead\n"
)


@pytest.mark.parametrize(
    ("line", "tensor"),
    [
        ("", ""),
        (MOVED.format("token_embd.weight", 0), ""),  # it belongs in main memory
        (MOVED.format("token_embd.weight", 1), "token_embd.weight"),
        (MOVED.format("blk.0.ffn_up.weight", 0), "blk.0.ffn_up.weight"),
    ],
)
def test_a_tensor_that_stays_in_main_memory_is_noticed(line: str, tensor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_moved", [])
    binding._log(1, line.encode(), None)
    assert binding._left_behind() == (binding.LeftBehind(tensor, "Vulkan0") if tensor else None)


EXPERTS = "tensor blk.0.ffn_up_exps.weight (3 MiB q4_K) buffer type overridden to CPU\n"


@pytest.mark.parametrize(
    ("line", "tensor"),
    [
        (MOVED.format("blk.0.ffn_up_exps.weight", 0), ""),
        (MOVED.format("token_embd.weight", 1), ""),
        (MOVED.format("token_embd.weight", 2), "token_embd.weight"),
        (MOVED.format("blk.0.attn_k.weight", 1), "blk.0.attn_k.weight"),
    ],
)
def test_experts_that_stay_in_main_memory_on_purpose_hide_no_other_tensor(
    line: str, tensor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_moved", "_overridden"):
        monkeypatch.setattr(binding, name, [])
    for said in (EXPERTS, line):
        binding._log(1, said.encode(), None)
    assert binding._left_behind() == (binding.LeftBehind(tensor, "Vulkan0") if tensor else None)


def test_layers_are_divided_among_devices_and_the_output_matrix_is_on_the_last() -> None:
    assert binding.PROCESSOR.parts == ()
    single = binding.LayerDevices((1,), n_layers=4)
    assert (single.parts, single.is_mixed) == ((), False)
    mixed = binding.LayerDevices((1, 2), (3, 2), 8)
    assert (mixed.parts, mixed.processor_layers, mixed.is_mixed) == ((3, 3), 3, True)
    assert binding.LayerDevices((1,), (2,), 4, n_hidden=1).parts == (4,)


def test_the_device_of_each_layer_is_read_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_layer_devices", {})
    for index, device in enumerate(("CPU", "Vulkan0")):
        line = f"load_tensors: layer {index:3} assigned to device {device}, is_swa = 0\n"
        binding._log(1, line.encode(), None)
    assert binding.layer_devices() == ("CPU", "Vulkan0")


def test_allocated_memory_is_read_from_the_log() -> None:
    binding.take_buffers()
    for line in (
        "load_tensors:      Vulkan0 model buffer size =     6.50 MiB\n",
        "llama_kv_cache:    Vulkan0 KV buffer size =     0.50 MiB\n",
        "sched_reserve:        CPU compute buffer size =     1.00 MiB\n",
        "a line about another buffer\n",
    ):
        binding._log(2, line.encode(), None)
    assert binding.take_buffers() == {"Vulkan0": 7 << 20, "CPU": 1 << 20}
    assert binding.take_buffers() == {}


@pytest.mark.parametrize(
    ("tensor", "is_expert"),
    [
        ("blk.1.ffn_up_exps.weight", True),
        ("blk.2.ffn_gate_up_exps.weight", True),
        ("blk.12.ffn_up_exps.weight", False),
        ("blk.0.ffn_up_exps.weight", False),
        ("blk.1.ffn_up.weight", False),
        ("blk.1.ffn_up_shexp.weight", False),
    ],
)
def test_only_the_experts_of_the_first_layers_on_a_card_stay_in_main_memory(tensor: str, is_expert: bool) -> None:
    assert bool(re.search(binding.expert_pattern(range(1, 3)), tensor)) is is_expert


@pytest.mark.parametrize(
    ("tensor", "is_later"),
    [
        ("blk.0.ffn_up.weight", False),
        ("blk.1.attn_q.weight", False),
        ("blk.2.attn_q.weight", True),
        ("blk.12.attn_q.weight", True),
        ("output.weight", True),
        ("output_norm.weight", True),
        ("token_embd.weight", False),
    ],
)
def test_only_the_first_layers_are_on_a_device_that_is_checked_alone(tensor: str, is_later: bool) -> None:
    assert bool(re.search(binding.later_pattern(13, 2), tensor)) is is_later
    assert not re.search(binding.later_pattern(2, 2), "blk.1.attn_q.weight")
