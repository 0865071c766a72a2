"""The shape of a model: its layers are counted, and JSON carries each number as it is."""

from __future__ import annotations

import msgspec

from app.core.model_shape import LayerKind, ModelShape, Setting, Tensor

MATRIX = Tensor("attn_q.weight", 12, (256, 256))


def test_layers_of_all_kinds_are_counted() -> None:
    kinds = (LayerKind(3, (MATRIX,)), LayerKind(2, (MATRIX, MATRIX)))
    assert ModelShape("llama", 256, (), kinds, (), MATRIX).n_layers == 5


def test_values_keep_their_kinds_on_the_wire() -> None:
    values = (1, 1.0, 1e-5, 10000.0, True, False, "yarn", -(1 << 63))
    setting = Setting("llama.x", 6, values, is_list=True)
    again = msgspec.json.decode(msgspec.json.encode(setting), type=Setting)
    assert again == setting
    assert list(map(type, again.values)) == list(map(type, values))
