"""A model in several files is read, cut and computed like the same model in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import align_up, entry, header_bytes, read_header
from app.core.errors import BadInput, Damaged
from testbed import tiny
from tests.families import proof
from tests.families.driven import Workers

N_PARTS = 3


def in_parts(path: Path, folder: Path, n: int = N_PARTS, first: int = 0) -> list[Path]:
    """The same model in `n` files; the first part has `first` tensors."""
    header, whole = read_header(path), path.read_bytes()
    tensors = list(header.tensors.items())
    rest = tensors[first:]
    share = -(-len(rest) // (n - 1))
    shares = [tensors[:first], *(rest[at : at + share] for at in range(0, len(rest), share))]
    result = []
    for number, some in enumerate(shares):
        entries = [entry(f"split.{key}", 2, (value,)) for key, value in
                   {"no": number, "count": n, "tensors.count": len(tensors)}.items()
                   if key != "tensors.count"]  # fmt: skip
        entries.append(entry("split.tensors.count", 5, (len(tensors),)))
        if number == 0:
            entries += [header.raw[value.start : value.end] for value in header.entries.values()]
        else:
            entries.append(entry("general.architecture", tensor_types.STRING, ("llama",)))
        listed = [(name, tensor.shape, tensor.kind, tensor.n_bytes) for name, tensor in some]
        data = bytearray(header_bytes(32, entries, listed))
        for _, tensor in some:
            data += bytes(align_up(len(data), 32) - len(data))
            data += whole[tensor.offset : tensor.offset + tensor.n_bytes]
        data += bytes(align_up(len(data), 32) - len(data))
        result.append(folder / f"big-Q8_0-{number + 1:05}-of-{n:05}.gguf")
        result[-1].write_bytes(data)
    return result


@pytest.mark.parametrize("first", [0, 1, 5])
async def test_it_is_the_same_model(tmp_path: Path, first: int) -> None:
    single = tiny.llama(tmp_path / "one.gguf", layers=4)
    parts = in_parts(single, tmp_path, first=first)
    home = proof.home(tmp_path / "home")
    item, several = home.shelf.import_file(single), home.shelf.import_file(parts[-1])
    assert several.name == "big-Q8_0"
    assert several.path == str(parts[0])
    assert several.tensors == item.tensors
    assert several.model.weights.layer_bytes == item.model.weights.layer_bytes
    assert several.model.file_bytes == sum(part.stat().st_size for part in parts)
    assert home.shelf.verify(several) == several
    async with Workers() as workers:
        verdict = await proof.prove(workers, home, several, [(), (2,), (1, 3)], anchor=item)
    assert verdict.tokens_equal
    assert verdict.largest == 0


def test_a_part_that_is_touched_or_gone_is_noticed(tmp_path: Path) -> None:
    parts = in_parts(tiny.llama(tmp_path / "one.gguf", layers=4), tmp_path, first=2)
    home = proof.home(tmp_path / "home")
    entry = home.shelf.import_file(parts[0])
    data = bytearray(parts[1].read_bytes())
    data[-40] ^= 1
    parts[1].write_bytes(data)
    with pytest.raises(Damaged):
        home.shelf.verify(entry)
    parts[1].unlink()
    with pytest.raises(BadInput) as error:
        home.shelf.verify(entry)
    assert error.value.reason.code == "model_gone"


def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    parts = in_parts(tiny.llama(tmp_path / "one.gguf", layers=4), tmp_path, first=2)
    parts[1].write_bytes(parts[2].read_bytes())
    with pytest.raises(BadInput) as error:
        read_header(parts[0])
    assert error.value.reason.code == "gguf_part"
    parts[2].unlink()
    with pytest.raises(BadInput) as error:
        read_header(parts[0])
    assert error.value.reason.code in ("gguf_part", "file_missing")
