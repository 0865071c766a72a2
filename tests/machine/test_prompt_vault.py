"""The vault of computed prompts: what happens at once, and what the disk refuses."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from app.core.errors import Refused
from app.inference.pipeline.kept_prompts import INDEX, ModelPrompts, PromptIndex
from app.machine.kept_files import UNUSED_S, KeptFiles
from app.machine.paths import Home
from app.machine.prompt_vault import OWN, PromptVault

NAME, SECOND = "a" * 64, "b" * 64


def vault_in(folder: Path, chosen_bytes: int | None = None) -> PromptVault:
    return PromptVault(Home.at(folder).create(), lambda: True, lambda: chosen_bytes)


def test_two_files_of_one_name_at_once_leave_a_sound_one(tmp_path: Path) -> None:
    files, key = KeptFiles(tmp_path), bytes(32)
    writers = [files.write(OWN, NAME, key, 10, 100_000, 1 << 20) for _ in range(2)]
    for writer in writers:
        writer.add(bytes(100_000))
    for writer in writers:
        writer.commit()
    reader = files.read(OWN, NAME, key)
    assert reader is not None
    assert b"".join(reader.pieces()) == bytes(100_000)
    reader.close()


async def test_two_files_at_once_do_not_exceed_the_limit(tmp_path: Path) -> None:
    vault = vault_in(tmp_path, 3000)
    writers = [await vault.begin(OWN, name, 10, 2000) for name in (NAME, SECOND)]
    for writer in writers:
        assert writer is not None
        writer.add(bytes(2000))
        await vault.commit(writer)
    assert vault.used_bytes <= 3000


async def test_what_cannot_be_deleted_ends_nothing(tmp_path: Path) -> None:
    vault = vault_in(tmp_path, 0)
    (tmp_path / "kept" / OWN / NAME / "folder").mkdir(parents=True)
    assert await vault.open(OWN, NAME) is None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await vault.keep_rules()


async def test_the_list_of_prompts_outlives_the_states_that_it_lists(tmp_path: Path) -> None:
    text = list(range(1000))
    index = PromptIndex(vault_in(tmp_path))
    await index.load()
    await index.add("model", "owner", text)
    path = tmp_path / "kept" / OWN / INDEX
    os.utime(path, (time.time() - UNUSED_S - 60,) * 2)
    assert await ModelPrompts(index, "model").find("owner", text, 64, recurrent=False)
    await index.vault.apply_rules()
    assert path.exists()


async def test_a_prompt_that_was_about_to_be_listed_is_not_after_all_were_deleted(tmp_path: Path) -> None:
    text = list(range(1000))
    index = PromptIndex(vault_in(tmp_path))
    prompts = ModelPrompts(index, "model")
    assert await prompts.new_key("owner", text)
    index.forget()
    await index.vault.remove_all()
    await prompts.add("owner", text)
    assert index.best("model", "owner", text) is None
    assert not list((tmp_path / "kept").glob("*/*"))
    assert await prompts.new_key("owner", text)
    await prompts.add("owner", text)
    assert index.best("model", "owner", text)


def put(files: KeptFiles, owner: str, name: str, limit: int, n_bytes: int = 1000) -> None:
    writer = files.write(owner, name, bytes(32), 10, n_bytes, limit)
    writer.add(bytes(n_bytes))
    writer.commit()


def test_other_hosts_push_out_only_what_hosts_have_kept(tmp_path: Path) -> None:
    files, host, other = KeptFiles(tmp_path), "1" * 64, "2" * 64
    put(files, OWN, NAME, 4000)
    put(files, host, NAME, 4000)
    put(files, other, NAME, 4000)
    os.utime(tmp_path / OWN / NAME, times=(time.time() - 1000,) * 2)  # the least recently used one
    put(files, other, SECOND, 4000)
    assert files.has(OWN, NAME)
    assert [files.has(host, NAME), files.has(other, NAME), files.has(other, SECOND)].count(True) == 2
    put(files, OWN, SECOND, 4000, 3500)
    assert (files.has(OWN, NAME), files.has(OWN, SECOND)) == (False, True)
    assert files.owners() == [] or not any(files.has(owner, name) for owner in (host, other) for name in (NAME, SECOND))
    with pytest.raises(OSError, match="own states"):
        put(files, host, NAME, 4000)
    assert files.has(OWN, SECOND)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may delete everything")
async def test_what_remains_is_not_said_to_be_deleted(tmp_path: Path) -> None:
    vault = vault_in(tmp_path)
    put(vault._files, OWN, NAME, 1 << 20)
    (tmp_path / "kept" / OWN).chmod(0o500)
    try:
        with pytest.raises(Refused, match="prompts_left"):
            await vault.remove_all()
    finally:
        (tmp_path / "kept" / OWN).chmod(0o700)
    await vault.remove_all()
    assert not (tmp_path / "kept").exists()


async def test_a_disk_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = vault_in(tmp_path)
    put(vault._files, OWN, NAME, 1 << 20)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        with pytest.raises(Refused, match="prompts_left"):
            await vault.remove_all()
    assert vault.used_bytes > 0
    await vault.remove_all()
    assert vault.used_bytes == 0
    await vault.remove_all()  # nothing is there
