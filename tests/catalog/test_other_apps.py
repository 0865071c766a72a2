"""Files of other programs: found by each one's own habits, checked, named, and never touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.catalog.other_apps import AppFolder, ForeignModel, OtherApps, app_folders, app_of
from testbed import tiny

SHA = "ab" * 32


def model(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return tiny.llama(path, layers=2)


def found(app: str, folder: Path) -> list[ForeignModel]:
    return OtherApps([AppFolder(app, folder)]).files()


def test_lm_studio_keeps_them_by_maker_and_model(tmp_path: Path) -> None:
    path = model(tmp_path / "maker" / "Tiny-GGUF" / "Tiny-Q4_K_M.gguf")
    (path.parent / "mmproj-Tiny-F16.gguf").write_bytes(b"GGUF")
    (path.parent / "notes.txt").write_text("x")
    (foreign_model,) = found("LM Studio", tmp_path)
    assert (foreign_model.path, foreign_model.app, foreign_model.name, foreign_model.reason) == (
        path,
        "LM Studio",
        "Tiny-Q4_K_M",
        None,
    )
    assert foreign_model.model is not None
    assert foreign_model.model.n_layers == 2
    assert foreign_model.size_bytes == path.stat().st_size


def test_ollama_names_its_blobs_in_manifests(tmp_path: Path) -> None:
    blob = model(tmp_path / "blobs" / f"sha256-{SHA}")
    library = tmp_path / "manifests" / "registry.ollama.ai" / "library" / "tiny"
    library.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "cd" * 32},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{SHA}"},
    ]
    (library / "8b").write_text(json.dumps({"layers": layers}))
    (foreign_model,) = found("Ollama", tmp_path)
    assert (foreign_model.path, foreign_model.name) == (blob, "tiny-8b")
    assert foreign_model.model is not None


@pytest.mark.parametrize(
    "manifest",
    [
        "", "[]", "{", '{"layers": 7}', '{"layers": [{}]}', '{"layers": []}', "[" * 100_000,
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"}]}',
    ],
)  # fmt: skip
def test_an_odd_manifest_is_passed_over(tmp_path: Path, manifest: str) -> None:
    folder = tmp_path / "manifests" / "x" / "library" / "y"
    folder.mkdir(parents=True)
    (folder / "latest").write_text(manifest)
    assert found("Ollama", tmp_path) == []


def test_jan_calls_every_file_model_so_its_folder_names_it(tmp_path: Path) -> None:
    model(tmp_path / "llamacpp" / "models" / "Jan-v3-4B" / "model.gguf")
    (foreign_model,) = found("Jan", tmp_path)
    assert foreign_model.name == "Jan-v3-4B"


def test_the_hugging_face_cache_links_to_its_blobs(tmp_path: Path) -> None:
    repo = tmp_path / "models--maker--Tiny-GGUF"
    blob = model(repo / "blobs" / SHA)
    for commit in ("a" * 40, "b" * 40):
        link = repo / "snapshots" / commit / "Tiny-Q8_0.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
    (foreign_model,) = found("Hugging Face", tmp_path)
    assert foreign_model.name == "Tiny-Q8_0"
    assert foreign_model.path.name == "Tiny-Q8_0.gguf"


def test_what_cannot_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    (tmp_path / "big-00001-of-00003.gguf").write_bytes(b"GGUF")
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    codes = {
        foreign_model.name: foreign_model.reason and foreign_model.reason.code
        for foreign_model in found("Jan", tmp_path)
    }
    assert codes["big"] == "gguf_truncated"
    assert str(codes["broken"]).startswith("gguf_")
    assert set(codes) == {"broken", "big"}


def test_a_missing_folder_and_a_circle_of_links_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert found("Jan", tmp_path) == []
    assert found("Jan", tmp_path / "none") == []


def test_a_header_is_read_once_until_the_file_changes(tmp_path: Path) -> None:
    path = model(tmp_path / "x.gguf")
    apps = OtherApps([AppFolder("Jan", tmp_path)])
    (first,) = apps.files()
    assert apps.files()[0].model is first.model
    tiny.llama(path, layers=3)
    again = apps.files()[0].model
    assert again is not None
    assert again.n_layers == 3


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("linux", {"Ollama": "/usr/share/ollama/.ollama/models", "Jan": ".local/share/Jan/data"}),
        ("darwin", {"Jan": "Library/Application Support/Jan/data", "Ollama": ".ollama/models"}),
        ("win32", {"Jan": "AppData/Roaming/Jan/data", "LM Studio": ".lmstudio/models"}),
    ],
)
def test_each_system_has_its_places(system: str, expected: dict[str, str], tmp_path: Path) -> None:
    known = {(app_folder.app, app_folder.folder) for app_folder in app_folders(tmp_path, {}, system)}
    for app, folder in expected.items():
        assert (app, tmp_path / folder) in known, app


def test_the_systems_variables_and_lm_studios_settings_count(tmp_path: Path) -> None:
    settings = tmp_path / ".lmstudio" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"downloadsFolder": str(tmp_path / "big disk")}))
    environ = {"OLLAMA_MODELS": str(tmp_path / "o"), "HF_HUB_CACHE": str(tmp_path / "h")}
    known = app_folders(tmp_path, environ, "linux")
    folders = {app_folder.folder for app_folder in known}
    assert {tmp_path / "big disk", tmp_path / "o", tmp_path / "h"} <= folders
    assert app_of(tmp_path / "o" / "blobs" / "x", known) == "Ollama"
    assert app_of(tmp_path / "elsewhere", known) is None
