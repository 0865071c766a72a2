"""Projectors on the shelf: which model they are attached to, and why some cannot be used."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from app.catalog import shelf as shelf_module
from app.catalog.gguf import projector_reader
from app.catalog.shelf import Shelf
from app.core.errors import BadInput, Reason
from app.core.planner.placement import Candidate, Workload
from app.core.planner.stage_memory import planned_stage
from backends.contract import MAX_BATCH_TOKENS, Layers, Role
from tests.families.proof import home
from tests.vision.tiny_models import FAMILIES, IMAGE, ROWS, projector, text_model


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return home(tmp_path / "home").shelf


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def refused(shelf: Shelf, path: Path) -> Reason:
    with pytest.raises(BadInput) as error:
        shelf.import_file(path)
    return error.value.reason


def test_a_projector_beside_a_model_belongs_to_it_and_one_of_another_family_does_not(
    shelf: Shelf, tmp_path: Path
) -> None:
    model = text_model("gemma3", "gemma3", tmp_path / "tiny-gemma.gguf")
    projector("idefics3", 64, tmp_path / "mmproj-wide.gguf")
    assert not shelf.import_file(model).model.sees
    own = projector("gemma3", 32, tmp_path / "tiny-gemma-mmproj-f16.gguf")
    other = text_model("idefics3", "llama", tmp_path / "llama.gguf")
    entry = shelf.import_file(own)
    assert entry.name == "tiny-gemma"
    assert entry.model.projector is not None
    assert (entry.model.projector.path, entry.model.projector.picture_rows) == (str(own), ROWS["gemma3"])
    assert not shelf.import_file(other).model.sees  # of the same width, but of another family
    assert shelf.get("tiny-gemma").model.sees


def test_the_only_model_that_fits_gets_it_from_another_folder(shelf: Shelf, tmp_path: Path) -> None:
    path = projector("idefics3", 32, folder(tmp_path, "eyes") / "mmproj.gguf")
    assert refused(shelf, path) == Reason("projector_other", {"path": str(path), "width": 32})
    shelf.import_file(text_model("idefics3", "llama", folder(tmp_path, "a") / "one.gguf"))
    assert shelf.import_file(path).name == "one"
    shelf.import_file(FAMILIES / "mistral.gguf")  # of the same width, but without a token for pictures
    assert shelf.import_file(path).name == "one"
    second, third = (text_model("idefics3", "llama", folder(tmp_path, name) / "m.gguf") for name in ("b", "c"))
    shelf.import_file(second, name="two")
    shelf.import_file(third, name="three")
    reason = refused(shelf, path)
    assert (reason.code, reason.facts["models"]) == ("projector_several", "three, two")
    siblings = [third]
    assert shelf.import_file(path, siblings=siblings).name == "three"


def test_what_cannot_be_used_says_why_and_the_model_stays(shelf: Shelf, tmp_path: Path) -> None:
    model = shelf.import_file(FAMILIES / "qwen3-vl.gguf").model
    path = projector("idefics3", model.width, tmp_path / "mmproj.gguf", stated="qwen3vl_merger")
    entry = shelf.import_file(path)
    assert entry.model.projector is not None
    assert not entry.model.sees
    assert entry.model.projector.reason == Reason("projector_deep", {"model": "qwen3-vl", "architecture": "qwen3vl"})
    shelf.remove(entry.name)
    projector("idefics3", model.width, tmp_path / "mmproj.gguf", stated="pixtral")
    shelf.import_file(text_model("idefics3", "llama", tmp_path / "llama.gguf"), name="tiny")
    shown = shelf.get("tiny").model.projector  # the file beside it
    assert shown is not None
    assert shown.reason == Reason("projector_kind", {"model": "tiny", "kind": "pixtral"})


def test_a_damaged_projector_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    shelf.import_file(text_model("gemma3", "gemma3", folder(tmp_path, "a") / "tiny.gguf"))
    path = projector("gemma3", 32, tmp_path / "mmproj.gguf")
    path.write_bytes(path.read_bytes()[:-4000])
    assert refused(shelf, path).code == "gguf_truncated"


def test_a_model_that_is_moved_takes_its_projector_along(shelf: Shelf, tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old"), tmp_path / "new"
    text_model("gemma3", "gemma3", old / "tiny.gguf")
    projector("gemma3", 32, old / "mmproj.gguf")
    shelf.import_file(old / "tiny.gguf")
    old.rename(new)
    shelf.record_move(old, new)
    moved = shelf.get("tiny").model.projector
    assert moved is not None
    assert moved.path == str(new / "mmproj.gguf")


def test_the_plan_counts_the_projector_and_the_rows_of_a_picture(shelf: Shelf, tmp_path: Path) -> None:
    path = text_model("gemma3", "gemma3", tmp_path / "tiny.gguf")
    blind = shelf.import_file(path).model
    seeing = shelf.import_file(projector("gemma3", 32, tmp_path / "mmproj.gguf")).model
    assert seeing.projector is not None
    host, work = Candidate("a" * 64, "den", 1 << 40), Workload(256, 1)  # type: ignore[arg-type]
    whole, layers = Layers(0, blind.n_layers), (Role.WHOLE, Role.FIRST)
    sizes = [planned_stage(host, role, whole, model, work).total_bytes for role in layers for model in (blind, seeing)]
    assert sizes[1] - sizes[0] == seeing.projector.memory_bytes
    last = planned_stage(host, Role.LAST, whole, seeing, work)
    assert last.work_bytes - last.card_work_bytes == seeing.projector.memory_bytes
    assert sizes[2] == sizes[3]  # the lenders and the first run hold none of it
    replica = planned_stage(host, Role.WHOLE, whole, seeing, work, is_host=False)
    assert replica.total_bytes == sizes[0]
    assert replica.vision_bytes == 0


def test_500_damaged_projectors_are_refused_or_harmless(shelf: Shelf, tmp_path: Path) -> None:
    shelf.import_file(text_model("gemma3", "gemma3", folder(tmp_path, "a") / "tiny.gguf"))
    path = projector("gemma3", 32, tmp_path / "damaged.gguf")
    whole, chance, n_attached = path.read_bytes(), Random(35), 0
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(4096)] = chance.randrange(256)
        path.write_bytes(data)
        try:
            attached = shelf.import_file(path).model.projector
        except BadInput:
            continue
        n_attached += 1
        assert attached is not None
        assert attached.picture_rows <= MAX_BATCH_TOKENS
    assert 0 < n_attached < 500


def test_a_picture_of_more_rows_than_a_step_may_have_is_not_looked_at(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(IMAGE, "gemma3", 512)
    shelf.import_file(text_model("gemma3", "gemma3", tmp_path / "tiny.gguf"))
    entry = shelf.import_file(projector("gemma3", 32, tmp_path / "mmproj.gguf"))
    assert not entry.model.sees
    assert entry.model.projector is not None
    assert entry.model.projector.reason == Reason("projector_large", {"model": "tiny"})


def test_no_memory_is_planned_for_a_projector_whose_file_is_gone(shelf: Shelf, tmp_path: Path) -> None:
    text_model("gemma3", "gemma3", tmp_path / "tiny.gguf")
    path = projector("gemma3", 32, tmp_path / "mmproj.gguf")
    entry = shelf.import_file(tmp_path / "tiny.gguf")
    kept = path.rename(tmp_path / "elsewhere")
    lost = shelf.verify(entry).model
    assert not lost.sees
    assert lost.projector is not None
    assert lost.projector.reason == Reason("projector_gone", {"model": "tiny", "path": str(path)})
    kept.rename(path)
    assert shelf.verify(entry).model.sees


def test_a_projector_that_would_need_a_fortune_of_memory_takes_nothing_from_its_model(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file states it, so it may state anything."""
    path = text_model("idefics3", "llama", tmp_path / "tiny.gguf")
    blind = shelf.import_file(path).model
    eyes = projector("idefics3", 32, tmp_path / "mmproj.gguf")
    monkeypatch.setattr(projector_reader, "MOST_WORK_BYTES", 1 << 20)
    seeing = shelf.import_file(eyes).model
    assert seeing.projector is not None
    assert seeing.projector.reason == Reason("projector_large", {"model": "tiny"})
    host, work = Candidate("a" * 64, "den", 1 << 40), Workload(256, 1)  # type: ignore[arg-type]
    before, after = (
        planned_stage(host, Role.WHOLE, Layers(0, blind.n_layers), model, work) for model in (blind, seeing)
    )
    assert before == after


def test_a_model_keeps_a_projector_from_elsewhere(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A downloaded one is named after its hash, so that nothing beside the model tells of it."""
    path = text_model("gemma3", "gemma3", tmp_path / "tiny.gguf")
    shelf.import_file(path)
    eyes = projector("gemma3", 32, tmp_path / f"{7:064x}.gguf")
    assert shelf.import_file(eyes).model.sees
    known = shelf.get("tiny").model.projector
    assert shelf.import_file(path).model.projector == known  # the same file is added again
    monkeypatch.setattr(shelf_module, "FORMAT", shelf_module.FORMAT + 1)  # after an update of the app
    assert shelf.get("tiny").model.projector == known
    eyes.unlink()
    assert shelf.get("tiny").model.projector is None
