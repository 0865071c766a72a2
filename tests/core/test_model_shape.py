"""The shape of a model: its runs name their layers by number, and JSON carries each number as it is."""

from __future__ import annotations

import msgspec
import pytest

from app.core.model import LayerKind, LayerRun, ModelShape, Setting, Tensor

MATRIX = Tensor("attn_q.weight", 12, (256, 256))


def test_a_run_names_its_layers_by_number() -> None:
    layer_kind, two = LayerKind((MATRIX,)), LayerKind((MATRIX, MATRIX))
    run = LayerRun((1, 0, 1), (), 3.0)
    made = ModelShape("llama", 256, (), (layer_kind, two), (run,), (), MATRIX)
    assert made.layers(run) == (two, layer_kind, two)


@pytest.mark.parametrize(
    "odd", [{"kinds": []}, {"kinds": [-1]}, {"kinds": [16]}, {"kinds": [0] * 17},
            {"average_layers": 0.0}, {"average_layers": 1e9}]
)  # fmt: skip
def test_a_run_beyond_its_bounds_is_not_read(odd: dict[str, object]) -> None:
    good = {"kinds": [0], "settings": [], "average_layers": 1.0}
    msgspec.convert(good, LayerRun)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | odd, LayerRun)


def test_values_keep_their_kinds_on_the_wire() -> None:
    values = (1, 1.0, 1e-5, 10000.0, True, False, "yarn", -(1 << 63))
    setting = Setting("llama.x", 6, values, is_list=True)
    again = msgspec.json.decode(msgspec.json.encode(setting), type=Setting)
    assert again == setting
    assert list(map(type, again.values)) == list(map(type, values))
