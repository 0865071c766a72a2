"""Bindings to llama.cpp RPC by the plain C names of its functions: a server process, and the client's devices."""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Sequence

from backends.llamacpp import backend_libraries, binding

CPU_DEVICE = 0  # GGML_BACKEND_DEVICE_TYPE_CPU in ggml-backend.h


class Ggml:
    """The functions of llama.cpp's shared libraries that RPC needs."""

    def __init__(self) -> None:
        folder = binding.libraries_folder(binding.load())
        library = backend_libraries.libraries(folder).get("rpc")
        if library is None:
            raise RuntimeError("this llama.cpp was built without RPC: rebuild with -DGGML_RPC=ON")
        binding.load_backend(library)
        pointer = ctypes.c_void_p
        self.device_by_type = binding.ggml("ggml_backend_dev_by_type", pointer, ctypes.c_int)
        self.register = binding.ggml("ggml_backend_register", None, pointer)
        self.device = binding.ggml("ggml_backend_reg_dev_get", pointer, pointer, ctypes.c_size_t)
        rpc = ctypes.CDLL(str(library))
        self.add_server = _pointer(rpc.ggml_backend_rpc_add_server, [ctypes.c_char_p])
        self.serve = rpc.ggml_backend_rpc_start_server
        self.serve.argtypes = [
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
        ]
        self.serve.restype = None


def _pointer(function: ctypes._NamedFuncPointer, arguments: Sequence[type]) -> ctypes._NamedFuncPointer:
    function.argtypes, function.restype = arguments, ctypes.c_void_p
    return function


def remote_devices(servers: Sequence[str]) -> ctypes.Array[ctypes.c_void_p]:
    """Connect to each `host:port`. Return the NULL-terminated devices for llama_model_params.devices."""
    ggml = Ggml()
    devices = []
    for server in servers:
        registry = ggml.add_server(server.encode())
        if not registry:
            raise RuntimeError(f"no RPC server answers at {server}")
        ggml.register(registry)
        devices.append(ggml.device(registry, 0))
    return (ctypes.c_void_p * (len(devices) + 1))(*devices, None)


def main() -> None:
    """Serve the CPU of this machine with one thread until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", required=True)
    endpoint = parser.parse_args().endpoint
    ggml = Ggml()
    devices = (ctypes.c_void_p * 1)(ggml.device_by_type(CPU_DEVICE))
    ggml.serve(endpoint.encode(), None, 1, 1, devices)


if __name__ == "__main__":
    main()
