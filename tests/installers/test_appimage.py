"""The AppImage on a clean system without FUSE: the first minute under X11 and Wayland, a full disk, a damaged file."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from installers.payload.places import RESULTS
from tests.gui.outside import opened
from tests.installers.clean_system import USER_ID, CleanSystem, can_be_used, clean_system
from tests.installers.test_debian_package import DATA, HOME, IN_FILES, MOST_SECONDS, SUITES, other_disk, package, within
from tests.network.namespaces import lan

pytestmark = [pytest.mark.installers, pytest.mark.root, pytest.mark.timeout(600)]
IMAGE = f"/{HOME}/Poolhouse.AppImage"
CACHE = f"{HOME}/.cache/poolhouse-appimage"


@pytest.fixture(params=SUITES)
def system(request: pytest.FixtureRequest) -> Iterator[CleanSystem]:
    """A clean system with the AppImage in the user's home, and without FUSE."""
    if reason := can_be_used():
        pytest.skip(reason)
    images = sorted(RESULTS.glob("poolhouse-*.AppImage"))
    if not images:
        pytest.skip("needs the AppImage: `make installers-test` builds it")
    with clean_system(request.param, package()) as made:
        place = made.root / IMAGE.lstrip("/")
        shutil.copyfile(images[0], place)
        place.chmod(0o755)
        os.chown(place, USER_ID, USER_ID)
        assert not shutil.which("fusermount3", path=str(made.root / "usr/bin"))
        yield made


@contextmanager
def running(system: CleanSystem) -> Iterator[None]:
    """A node that runs until the end of the block."""
    process = subprocess.Popen(
        system.command(IMAGE, "node", variables=IN_FILES), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_first_answer_comes_within_a_minute_under_x11(
    system: CleanSystem, record_property: Callable[[str, object], None]
) -> None:
    with lan(1) as net, ExitStack() as stack:
        before = ("ip", "netns", "exec", net.names[0])
        screen = system.shared / "screen"
        screen.mkdir()
        screen.chmod(0o777)
        as_user = (*before, "setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups")
        begun = time.monotonic()
        program = system.command(IMAGE, net=before, variables=IN_FILES)
        person, _ = stack.enter_context(opened(Path("/unused"), screen, as_user, program))
        person.press("Continue", role="push button", within=60)
        person.press("Only this computer for now", role="push button", within=60)
        person.press("Load", role="push button", within=60)
        person.press("Explain how a rainbow forms, in three sentences.", role="push button", within=60)
        person.read("tok/s", within=60)
        took = time.monotonic() - begun
    print(f"first answer after {took:.1f} s")
    record_property("seconds", round(took, 1))
    assert took < MOST_SECONDS


@pytest.mark.skipif(not shutil.which("weston"), reason="needs weston")
def test_the_window_opens_under_wayland(system: CleanSystem) -> None:
    place = system.shared / "wayland"
    place.mkdir(mode=0o700)
    os.chown(place, USER_ID, USER_ID)
    user = ("setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(place), "HOME": str(place)}
    weston = subprocess.Popen(
        [*user, "weston", "--backend=headless-backend.so", "--socket=wayland-test", "--idle-time=0"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        within(20, (place / "wayland-test").exists)
        variables = {**IN_FILES, "XDG_RUNTIME_DIR": str(place), "WAYLAND_DISPLAY": "wayland-test"}
        program = subprocess.Popen(
            system.command(IMAGE, variables=variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            within(60, lambda: "libqwayland" in Path("/proc", str(program.pid), "maps").read_text("utf-8"))
            within(60, (system.root / "home/anna/.local/share/poolhouse/runtime.json").exists)
            assert program.poll() is None
        finally:
            program.terminate()
            said, _ = program.communicate(timeout=60)
        assert "Traceback" not in said
        assert "could not" not in said
    finally:
        weston.terminate()
        weston.wait()


def test_one_copy_is_unpacked_and_older_ones_are_removed(system: CleanSystem) -> None:
    older = system.root / CACHE / "0.0.9-older"
    older.mkdir(parents=True)
    for folder in (older, older.parent, older.parent.parent):
        os.chown(folder, USER_ID, USER_ID)
    assert system.run(IMAGE, "--version").stdout.startswith("Poolhouse ")
    (unpacked,) = [path for path in (system.root / CACHE).iterdir() if path.is_dir()]
    assert unpacked != older
    stamp = unpacked.stat().st_ctime_ns
    begun = time.monotonic()
    assert system.run(IMAGE, "--appimage-extract-and-run", "--version").stdout.startswith("Poolhouse ")
    print(f"second start after {time.monotonic() - begun:.1f} s")
    assert unpacked.stat().st_ctime_ns == stamp


def test_removing_all_data_leaves_only_the_file_that_was_downloaded(system: CleanSystem) -> None:
    before = system.files()
    assert system.run(IMAGE, "node", "--help").stdout
    with running(system):
        assert (system.root / CACHE).exists()
    system.run(IMAGE, "erase", "--yes", variables=IN_FILES)
    assert system.files() - before == set()


def test_a_damaged_or_cut_image_is_told_in_one_sentence(system: CleanSystem) -> None:
    image = system.root / IMAGE.lstrip("/")
    os.truncate(image, image.stat().st_size // 2)
    done = system.run(IMAGE, "--version", check=False)
    assert done.returncode == 1
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("This AppImage is damaged")
    assert not [path for path in (system.root / CACHE).iterdir() if path.is_dir()]


def test_what_stops_it_is_shown_on_the_screen_after_a_double_click(system: CleanSystem) -> None:
    """A double click has no terminal. The desktop's own program for such messages shows the sentence."""
    image = system.root / IMAGE.lstrip("/")
    os.truncate(image, image.stat().st_size // 2)
    dialog, shown = system.root / "usr/bin/zenity", system.root / HOME / "shown.txt"
    dialog.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > /{HOME}/shown.txt\n')
    dialog.chmod(0o755)
    assert system.run(IMAGE, check=False, variables={"DISPLAY": ":0"}).returncode == 1
    kind, *_, sentence = shown.read_text().splitlines()
    assert kind == "--error"
    assert sentence.startswith("This AppImage is damaged")
    shown.unlink()
    system.run(IMAGE, check=False)
    assert not shown.exists(), "a computer without a screen shows none"


def test_a_home_on_another_disk_keeps_all_of_it(system: CleanSystem) -> None:
    home = system.root / HOME
    image = (system.root / IMAGE.lstrip("/")).rename(system.root / "var/tmp/image")
    with other_disk(home):
        shutil.move(image, system.root / IMAGE.lstrip("/"))
        with running(system):
            within(60, (system.root / DATA / "runtime.json").exists)
        assert (system.root / CACHE).stat().st_dev == home.stat().st_dev
    assert not (system.root / CACHE).exists()
    assert not (system.root / DATA).exists()


def test_a_home_that_cannot_be_written_is_no_obstacle_for_unpacking(system: CleanSystem) -> None:
    home = system.root / "home/anna"
    subprocess.run(["mount", "--bind", str(home), str(home)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(home)], check=True)
    try:
        assert system.run(IMAGE, "--version").stdout.startswith("Poolhouse ")
        done = system.run(IMAGE, "node", check=False, variables=IN_FILES)
        (sentence,) = (done.stdout + done.stderr).strip().splitlines()
        assert "Traceback" not in sentence
    finally:
        shutil.rmtree(f"/tmp/poolhouse-appimage-{USER_ID}")


def test_a_full_disk_is_told_before_anything_is_written() -> None:
    if reason := can_be_used():
        pytest.skip(reason)
    images = sorted(RESULTS.glob("poolhouse-*.AppImage"))
    if not images:
        pytest.skip("needs the AppImage: `make installers-test` builds it")
    with clean_system(SUITES[0], package(), disk_mib=300) as small:
        shutil.copyfile(images[0], small.root / IMAGE.lstrip("/"))
        (small.root / IMAGE.lstrip("/")).chmod(0o755)
        done = small.run(IMAGE, "--version", check=False)
        assert done.returncode == 1
        (sentence,) = done.stderr.strip().splitlines()
        assert sentence.startswith("Poolhouse needs ")
        assert "MiB are free" in sentence
