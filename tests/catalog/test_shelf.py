"""Models are found by name, never moved, and refused once their file is another one."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from app.catalog.shelf import Shelf
from app.core.errors import AppError, BadInput, Damaged, DoesNotFit
from app.core.reasons import said
from backends.contract import Layers, Role
from testbed import tiny
from tests.catalog.conftest import Home, new_home
from tests.catalog.raw import small


def code(error: pytest.ExceptionInfo[AppError]) -> str:
    assert said(error.value)
    return error.value.reason.code


def test_an_imported_model_is_there_after_a_restart(home: Home) -> None:
    path = tiny.llama(home.folder / "Tiny.Q8_0.gguf")
    before = path.read_bytes()
    reports: list[tuple[int, int]] = []
    entry = home.shelf.import_file(path, lambda done, total: reports.append((done, total)))
    assert entry.name == "Tiny.Q8_0"
    assert reports[-1][0] == reports[-1][1] == entry.model.stage_bytes(entry.model.layers, Role.WHOLE)
    assert reports == sorted(reports)
    again = new_home(home.folder).shelf
    assert again.get("Tiny.Q8_0") == entry
    assert again.entries() == (entry,)
    assert path.read_bytes() == before


def test_one_name_by_its_beginning(home: Home) -> None:
    for seed, name in enumerate(("llama-8b", "llama-70b", "llama")):
        home.add(name, layers=2, seed=seed)
    assert home.shelf.get("LLAMA-7").name == "llama-70b"
    assert home.shelf.get("llama").name == "llama"
    assert home.shelf.get("Llama").name == "llama"
    with pytest.raises(BadInput) as error:
        home.shelf.get("llama-")
    assert code(error) == "model_ambiguous"
    assert "llama-70b, llama-8b" in said(error.value)
    for name in ("qwen", "", "../qwen"):
        with pytest.raises(BadInput) as error:
            home.shelf.get(name)
        assert code(error) == "model_unknown"
        assert "llama-8b" in said(error.value)
    with pytest.raises(BadInput, match="model_unknown_near") as error:
        home.shelf.get("lama-8b")
    assert "Did you mean llama-8b? Available: llama" in said(error.value)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("my model (1)", "my-model-1"),
        ("-x", "x"),
        ("é", "model"),
        ("con", "model-con"),
        ("com1.q4", "model-com1.q4"),
        ("a" * 150, "a" * 100),
    ],
)
def test_a_name_one_can_type(home: Home, stem: str, name: str) -> None:
    entry = home.shelf.import_file(tiny.llama(home.folder / f"{stem}.gguf", layers=2))
    assert entry.name == name
    assert home.shelf.get(name) == entry


def test_another_file_of_that_name_gets_a_number(home: Home) -> None:
    other = home.folder / "other"
    other.mkdir()
    first = home.add("m", layers=2)
    second = home.shelf.import_file(tiny.llama(other / "M.gguf", layers=2, seed=1))
    assert (first.name, second.name) == ("m", "M-2")
    tiny.llama(home.folder / "m.gguf", layers=3)
    third = home.shelf.import_file(home.folder / "m.gguf")
    assert third.name == "m"
    assert home.shelf.get("m").model.n_layers == 3
    assert home.shelf.import_file(other / "M.gguf").name == "M-2"
    assert len(home.shelf.entries()) == 2
    fake = home.shelf.import_file(tiny.llama(home.folder / "guide.gguf", layers=2))
    assert fake.name == "guide-2"


def test_a_file_is_called_as_its_model_is(home: Home) -> None:
    path = tiny.llama(home.folder / "my model (1).gguf", layers=2)
    home.shelf.import_file(path)
    assert home.shelf.name_of(path) == "my-model-1"
    assert home.shelf.name_of(home.folder / "gone.gguf") == "gone"


def test_the_same_bytes_are_one_model_wherever_they_lie(home: Home) -> None:
    first = home.add("m", layers=2)
    copy = home.folder / "a copy.gguf"
    copy.write_bytes((home.folder / "m.gguf").read_bytes())
    assert home.shelf.import_file(copy) == first
    assert [entry.name for entry in home.shelf.entries()] == ["m"]
    assert home.shelf.import_file(copy, name="again").path == str(copy)  # it was asked for
    home.shelf.remove("again")
    Path(first.path).unlink()
    assert home.shelf.import_file(copy).path == str(copy)  # the other one is gone


def test_the_same_weights_have_the_same_id(home: Home) -> None:
    text, same, other = (home.add(name, layers=2, seed=seed).model.id for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert text == same != other


def test_rm_leaves_the_file_alone(home: Home) -> None:
    entry, other = home.add("m", layers=4), home.add("other", layers=4, seed=1)
    home.stages.write_stage(home.shelf.cut(entry, Layers(0, 2), Role.FIRST))
    kept = home.stages.write_stage(home.shelf.cut(other, Layers(0, 2), Role.FIRST))
    assert home.shelf.remove("m") == entry
    assert Path(entry.path).exists()
    assert list((home.folder / "stages").glob("*.gguf")) == [kept]
    assert [entry.name for entry in home.shelf.entries()] == ["other"]


def test_an_unchanged_file_is_not_hashed_again(home: Home) -> None:
    entry = home.add("m", layers=2)
    values: list[int] = []
    assert home.shelf.verify(entry, lambda done, _: values.append(done)) is entry
    assert values == []
    os.utime(entry.path, ns=(5, 5))
    again = home.shelf.verify(entry, lambda done, _: values.append(done))
    assert values
    assert (again.model, again.mtime_ns) == (entry.model, 5)
    assert home.shelf.get("m") == again


def test_300_flips_and_cuts_of_a_model_are_found(home: Home) -> None:
    entry = home.add("m", layers=2)
    path = Path(entry.path)
    whole = path.read_bytes()
    header = home.shelf.header(entry)
    places = [
        *range(0, len(header.raw), 7),
        *(tensor.offset for tensor in header.tensors.values()),
        *(tensor.offset + tensor.n_bytes - 1 for tensor in header.tensors.values()),
    ]
    chance = random.Random(3)
    for turn in range(300):
        data = bytearray(whole)
        if turn % 5 == 0:
            del data[chance.randrange(len(data)) :]
        else:
            data[chance.choice(places)] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        os.utime(path, ns=(turn, turn))
        with pytest.raises(Damaged) as error:
            home.shelf.verify(entry)
        assert code(error) == "model_changed"


def test_a_file_that_is_gone_says_so(home: Home) -> None:
    entry = home.add("m", layers=2)
    Path(entry.path).unlink()
    assert home.shelf.entries() == (entry,)
    with pytest.raises(BadInput) as error:
        home.shelf.verify(entry)
    assert code(error) == "model_gone"
    with pytest.raises(BadInput) as error:
        home.shelf.header(entry)
    assert code(error) == "model_gone"  # not that somebody mistyped a path
    home.shelf.remove("m")
    assert home.shelf.entries() == ()


def test_a_lost_file_of_another_name_is_no_matter_of_a_model_that_is_there(home: Home) -> None:
    """The same bytes under two names: the id means the one whose file is there, also where it comes later."""
    path = tiny.llama(home.folder / "a.gguf", layers=2)
    copy = home.folder / "b.gguf"
    copy.write_bytes(path.read_bytes())
    gone, there = home.shelf.import_file(path), home.shelf.import_file(copy, name="b")
    assert (gone.name, there.name) == ("a", "b")
    assert home.shelf.get(gone.model.id) == gone
    path.unlink()
    assert home.shelf.get(gone.model.id) == there
    assert home.shelf.verify(home.shelf.get(gone.model.id)) == there
    assert home.shelf.get(gone.model.id, ["a"]) == gone, "it is loaded, and answers"


def test_what_is_refused_leaves_nothing(home: Home) -> None:
    cases = {"a": b"no model", "b": small(block_count=0).bytes(), "c": small().bytes()[:-1]}
    for name, data in cases.items():
        path = home.folder / f"{name}.gguf"
        path.write_bytes(data)
        with pytest.raises(BadInput) as error:
            home.shelf.import_file(path)
        assert str(path) in said(error.value)
    with pytest.raises(BadInput):
        home.shelf.import_file(home.folder / "none.gguf")
    assert list((home.folder / "models").iterdir()) == []


def test_stopping_an_import_leaves_nothing(home: Home) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    path = tiny.llama(home.folder / "m.gguf", layers=2)
    with pytest.raises(KeyboardInterrupt):
        home.shelf.import_file(path, stop)
    assert list((home.folder / "models").iterdir()) == []


def test_one_bad_entry_hides_no_other(home: Home) -> None:
    entry = home.add("m", layers=2)
    folder = home.folder / "models"
    (folder / "bad.json").write_text("{")
    (folder / "form.json").write_text("{}")
    (folder / "letters.json").write_bytes(b'{"path": "\xff"}')
    (folder / "alias.json").write_bytes((folder / "m.json").read_bytes())
    assert home.shelf.entries() == (entry,)


def test_entries_of_an_older_app_are_read_again_from_the_file(home: Home) -> None:
    entry = home.add("m", layers=2)
    stored = home.folder / "models" / "m.json"
    old = json.loads(stored.read_text())
    old["format"] = 0
    del old["model"]["cuts"]
    stored.write_text(json.dumps(old))
    assert home.shelf.get("m") == entry
    Path(entry.path).unlink()
    assert home.shelf.entries() == ()


def test_the_guide_is_always_there(home: Home) -> None:
    with pytest.raises(BadInput) as error:
        home.shelf.get("guide")
    assert code(error) == "model_builtin_missing"
    guide = tiny.llama(home.folder / "guide.gguf", layers=2)
    shelf: Shelf = home.shelf
    home.add("m", layers=2, seed=1)
    assert [entry.name for entry in shelf.entries()] == ["guide", "m"]
    first = shelf.get("guide")
    assert first.builtin
    assert shelf.get("Gui") == first
    with pytest.raises(BadInput) as error:
        shelf.remove("guide")
    assert code(error) == "model_builtin"
    tiny.llama(guide, layers=3)  # an update of the app brings another one
    assert shelf.get("guide").model.n_layers == 3
    assert len(shelf.entries()) == 2


def test_the_guide_answers_where_the_disk_is_full(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise DoesNotFit("disk_full", folder=str(path.parent), needed_bytes=len(data), free_bytes=0)

    guide = tiny.llama(home.folder / "guide.gguf", layers=2)
    shelf = Shelf(home.folder / "models", guide, home.stages)
    with monkeypatch.context() as disk:
        disk.setattr("app.catalog.shelf.write_whole", full)
        first = shelf.get("guide")
        assert first.builtin
        assert shelf.get("guide") is first  # not hashed again for each question
    assert not list((home.folder / "models").glob("guide*.json"))
    tiny.llama(guide, layers=3)
    assert shelf.get("guide").model.n_layers == 3
    assert (home.folder / "models" / "guide.json").exists()


def test_a_broken_guide_hides_no_other(home: Home) -> None:
    (home.folder / "guide.gguf").write_bytes(b"broken")
    entry = home.add("m", layers=2)
    assert home.shelf.entries() == (entry,)


def test_what_a_model_said_on_one_machine_is_kept_with_it(home: Home) -> None:
    entry = home.add("m", layers=2)
    said_then = (((3, -0.5), (3, -0.5)),)
    (in_the_way := home.folder / "models" / "m.json.new").mkdir()  # as a full disk: it cannot be written
    home.shelf.save_known_answer(entry, said_then)
    assert home.shelf.get("m").proof == ()
    in_the_way.rmdir()
    home.shelf.save_known_answer(entry, said_then)
    assert home.shelf.get("m").proof == said_then
    home.shelf.remove("m")
    home.shelf.save_known_answer(entry, said_then)  # it went meanwhile
    assert home.shelf.entries() == ()
