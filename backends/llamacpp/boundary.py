"""Where a run ends: its last layer's output is read from the graph, and the graph stops there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container

from backends.contract import StageError
from backends.llamacpp import binding
from backends.wire_numbers import Rows


class Boundary:
    """The eval callback of a context. llama.cpp asks it about each node of the graph, some 36 a layer.

    Comparing names costs 0.35 µs a node, addresses 0.13. A graph is mostly used again or built again
    in the same place, so the node is found by name once and by address from then on; its name is
    checked each time that it is read.
    """

    def __init__(self, name: str, layer: int, *, by_name: bool = False) -> None:
        """by_name: always, where a step cannot be taken back and so a moved node is not found again."""
        self._name, self._by_name = f"{name}-{layer}".encode(), by_name
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._get = binding.ggml("ggml_backend_tensor_get", None, pointer, pointer, size, size)
        self._n_bytes = binding.ggml("ggml_nbytes", size, pointer)
        self._name_of = binding.ggml("ggml_get_name", ctypes.c_char_p, pointer)
        self._named = _Named(self._name, self._name_of)
        self._known: set[int] = set()  # addresses the node has had
        self._wanted: Container[int] = self._named
        self._rows: Rows | None = None  # kept alive while llama.cpp may write to it
        self._goal = (0, 0)  # their address, and bytes
        self.reached = False
        self.callback = binding.load().ggml_backend_sched_eval_callback(self._on_node)

    def expect(self, rows: Rows) -> None:
        """The output of the step computed from now on goes to `rows`."""
        self._rows, self._goal, self.reached = rows, (rows.ctypes.data, rows.nbytes), False

    def came(self) -> None:
        """It is computed. Raises StageError when nothing came."""
        self._rows = None
        if not self.reached:
            raise StageError(f"the model's graph has no {self._name.decode()} of {self._goal[1]} bytes")
        if not self._by_name:
            self._wanted = self._known

    def search(self) -> None:
        """Look for the node by name, in the next step."""
        self._wanted = self._named

    def _on_node(self, tensor: int, ask: bool, _user_data: int | None) -> bool:
        if ask:
            return tensor in self._wanted
        if self._name_of(tensor) != self._name:
            return True  # another node lies now where it lay: go on
        self._known.add(tensor)
        address, n_bytes = self._goal
        if self._rows is not None and self._n_bytes(tensor) == n_bytes:
            self._get(tensor, address, 0, n_bytes)
            self.reached = True
        return False  # what follows are norm and head


class _Named:
    """All nodes of a name."""

    def __init__(self, name: bytes, name_of: Callable[[int], bytes]) -> None:
        self._name, self._name_of = name, name_of

    def __contains__(self, tensor: object) -> bool:
        assert isinstance(tensor, int)
        return self._name_of(tensor) == self._name
