"""`poolhouse pull` while the hub is away: it says why, that it goes on, and what stops it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from app.api.plans import Progress
from app.cli.commands import pull_command
from app.cli.progress import _Bars, bar_figures, bars
from tests.cli.conftest import Said
from tests.cli.fake_node import FakeNode

Json = dict[str, Any]
AWAY = "huggingface.co cannot be reached: nothing answers."
GOES_ON = f"{AWAY} Poolhouse keeps trying; Ctrl-C pauses the download.\n"


def state(name: str, **more: Any) -> Json:
    return {"id": "d1", "state": name, "total_bytes": None, "held_up": None, "reason": None} | more


def following(states: list[Json]) -> dict[tuple[str, str], Any]:
    """A node whose download is in one of these after the other."""
    left: Iterator[Json] = iter(states)
    return {
        ("POST", "/copies"): {"machines": []},
        ("POST", "/downloads"): {"download": {"id": "d1"}},
        ("GET", "/downloads"): lambda _: {"downloads": [next(left)]},
    }


def test_why_nothing_comes_is_said_once_and_again_after_it_came(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_command, "POLL_SECONDS", 0.0)
    away, ended = state("starting", held_up=AWAY), "It could not be reached in 9 tries."
    states = [state("starting"), away, away, state("running"), away, state("failed", reason=ended)]
    answering(following(states))
    said = poolhouse("pull", "maker/Tiny-GGUF/Tiny-Q8_0.gguf")
    assert said.code == 1
    assert said.err == f"{GOES_ON}{GOES_ON}The download ended: {ended}\n"


def test_who_waits_for_the_network_is_not_told_that_it_starts(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_command, "POLL_SECONDS", 0.0)
    size = {"total_bytes": 10, "done_bytes": 0}
    away, ended = state("starting", held_up=AWAY, **size), state("failed", reason="No.")
    answering(following([state("starting", **size), away, away, ended]))
    said = poolhouse("pull", "maker/Tiny-GGUF/Tiny-Q8_0.gguf")
    assert said.err == f"Starting…\n{GOES_ON}Waiting…\nThe download ended: No.\n"


def test_a_download_has_one_bar_that_says_what_it_does_now() -> None:
    progress = bars(Console(file=StringIO()))
    bar = _Bars(progress)
    try:
        for step in ("waiting", "starting", "waiting"):
            bar.show(Progress(step, None, 0, 10, "bytes"))
            assert [task.description.lower() for task in progress.tasks] == [step]
    finally:
        progress.stop()


def test_a_single_step_shows_a_moving_bar_and_no_count() -> None:
    progress = bars(Console(file=StringIO()))
    bar = _Bars(progress)
    try:
        bar.show(Progress("loading", "attic", 0, 1, "steps"))
        (task,) = progress.tasks
        assert (task.total, bar_figures(task)) == (None, "")  # rich moves the bar of an unknown total
        bar.show(Progress("loading", "attic", 1, 1, "steps"))
        assert (task.finished, bar_figures(task)) == (True, "")
        bar.show(Progress("measuring", "attic", 1, 3, "steps"))
        assert bar_figures(progress.tasks[1]) == "1 of 3 steps"
    finally:
        progress.stop()


def test_one_that_is_on_the_shelf_by_another_name_is_told_by_that(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    model = {"name": "mine", "architecture": "llama", "n_layers": 2, "file_bytes": 1}
    done = following([state("done", model="mine"), state("done", model="mine")])
    answering(done | {("GET", "/models"): {"models": [model]}})
    text = "It is already on this computer, as mine.\n"
    assert poolhouse("pull", "maker/Tiny-GGUF/Tiny-Q8_0.gguf", "--name", "other").err == text
    assert poolhouse("pull", "maker/Tiny-GGUF/Tiny-Q8_0.gguf", "--name", "mine").err == ""


def test_a_hub_that_is_slow_to_tell_of_a_repository_is_waited_for_in_words(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pull_command.SILENT_SECONDS < 5
    monkeypatch.setattr(pull_command, "SILENT_SECONDS", 0.05)

    def slow(_: Json) -> Json:
        time.sleep(0.2)
        return {"files": [], "revision": "main"}

    answering({("GET", "/search/files?repo=maker%2FTiny-GGUF"): slow})
    said = poolhouse("pull", "maker/Tiny-GGUF")
    assert said.code == 1
    assert said.err.splitlines()[0] == ("The model hub has not answered yet. Poolhouse keeps trying; Ctrl-C stops.")
    monkeypatch.setattr(pull_command, "SILENT_SECONDS", 60.0)
    answering({("GET", "/search/files?repo=maker%2FTiny-GGUF"): {"files": [], "revision": "x"}})
    assert "has not answered yet" not in poolhouse("pull", "maker/Tiny-GGUF").err


def test_a_projector_is_only_downloaded_for_a_model_that_is_here(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    model: Json = {"file": "Tiny-Q8_0.gguf", "quantization": "Q8_0", "recommended": True}
    eyes, here = {"file": "mmproj.gguf"}, {"name": "Tiny", "architecture": "llama", "n_layers": 2, "file_bytes": 1}

    def pulled(on_shelf: str | None) -> tuple[Said, bool]:
        listing = {"files": [model | {"on_shelf": on_shelf}], "projectors": [eyes], "repository": "maker/Tiny-GGUF"}
        node = answering(
            following([state("done", model="Tiny")])
            | {("GET", "/search/files?repo=maker%2FTiny-GGUF"): listing, ("GET", "/models"): {"models": [here]}}
        )
        said = poolhouse("pull", "maker/Tiny-GGUF:mmproj")
        return said, any((verb, path) == ("POST", "/downloads") for verb, path, _ in node.asked)

    said, downloads = pulled(None)
    assert (said.code, downloads) == (1, False)
    assert "Download a model from there first." in said.err
    said, downloads = pulled("Tiny")
    assert (said.code, downloads) == (0, True)


def test_a_machine_that_has_the_file_is_asked_before_the_internet(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    model = {"name": "Tiny", "architecture": "llama", "n_layers": 2, "file_bytes": 1}
    den = {"id": "d" * 64, "name": "den"}

    def pulled(*words: str) -> tuple[str, Any]:
        result = following([state("done", model="Tiny")]) | {
            ("POST", "/copies"): {"machines": [den]},
            ("GET", "/models"): {"models": [model]},
        }
        node = answering(result)
        said = poolhouse("pull", "maker/Tiny-GGUF/Tiny-Q8_0.gguf", *words).err
        request = [body for _, path, body in node.asked if path == "/downloads" and body]
        return said, request[0].get("machine") if request else None

    said, machine = pulled()
    assert machine == den["id"]
    assert said.startswith("den has this file, so it is copied from there")
    assert pulled("--from", "DEN")[1] == den["id"]
    assert pulled("--online") == ("", None)
    said, machine = pulled("--from", "attic")
    assert said.startswith("attic does not share this model.")
    assert machine is None


def test_whether_models_may_be_copied_from_here(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    def saved(body: Json) -> Json:
        return {"share_models": body["share_models"]}

    node = answering({("GET", "/settings"): {"share_models": False}, ("POST", "/settings"): saved})
    assert "Other machines cannot copy models" in poolhouse("share").out
    assert "may copy the models downloaded" in " ".join(poolhouse("share", "on").out.split())
    assert poolhouse("share", "off", "--json").json == {"on": False}
    assert [body for way, _, body in node.asked if way == "POST"] == [
        {"share_models": True}, {"share_models": False},
    ]  # fmt: skip


def test_whether_loads_use_the_same_instructions_everywhere(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    node = answering({("GET", "/settings"): {"exact": False}, ("POST", "/settings"): lambda body: body})
    assert "its own fastest processor instructions" in " ".join(poolhouse("exact").out.split())
    assert "the same processor instructions on all computers" in " ".join(poolhouse("exact", "on").out.split())
    assert poolhouse("exact", "off", "--json").json == {"on": False}
    assert [body for way, _, body in node.asked if way == "POST"] == [{"exact": True}, {"exact": False}]
