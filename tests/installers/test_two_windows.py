"""Two new computers with an installed package each: from both first windows to a chat over both, clicks counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from installers.payload.places import RESULTS
from tests.gui.counted_person import Person
from tests.installers.clean_system import USER_ID, CleanSystem, can_be_used, clean_system
from tests.installers.test_debian_package import HOME, IN_FILES, SMOLLM2, package, window, within
from tests.network.namespaces import lan

pytestmark = [pytest.mark.installers, pytest.mark.root, pytest.mark.timeout(900)]
IMAGE = f"/{HOME}/Poolhouse.AppImage"
NAMES = ("Study", "Kitchen")  # as the windows propose them, from the names of the hosts
SUITES = ("bookworm", "bookworm")
MOST_CLICKS = 8  # on both computers together
ANSWER = ("Answer: ", f"{SMOLLM2}: ")  # while it comes; and then, whose it is
PICTURES = os.environ.get("POOLHOUSE_PICTURES", "")  # a folder for pictures of what a person sees, if they are wanted
QUESTION = "Explain how a rainbow forms, in three sentences."


@dataclass(frozen=True)
class Computer:
    """A clean system with an installed package, and the words that put a command into its own network."""

    system: CleanSystem
    net: tuple[str, ...]
    installed: str

    def told(self, *words: str) -> str:
        """Run a command of Poolhouse as its user, and return what it prints."""
        command = self.system.command(self.installed, *words, net=self.net, variables=IN_FILES)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def image() -> Path:
    """The AppImage in dist/."""
    images = sorted(RESULTS.glob("poolhouse-*.AppImage"))
    if not images:
        pytest.skip("needs the AppImage: `make installers-test` builds it")
    return images[0]


def called(name: str) -> tuple[str, ...]:
    """Words in front of a command that give it a host name of its own."""
    return ("unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh")


@pytest.fixture(params=["deb", "AppImage"])
def computers(request: pytest.FixtureRequest) -> Iterator[tuple[Computer, Computer]]:
    """Two new computers in one network, on which the package was just installed."""
    if reason := can_be_used():
        pytest.skip(reason)
    with ExitStack() as stack:
        net, made = stack.enter_context(lan(2)), []
        for number, (name, suite) in enumerate(zip(NAMES, SUITES, strict=True)):
            system = stack.enter_context(clean_system(suite, package()))
            installed = "poolhouse"
            if request.param == "AppImage":
                installed, place = IMAGE, system.root / IMAGE.lstrip("/")
                shutil.copyfile(image(), place)
                place.chmod(0o755)
                os.chown(place, USER_ID, USER_ID)
            else:
                system.install(package())
            made.append(
                Computer(system, ("ip", "netns", "exec", net.names[number], *called(name.casefold())), installed)
            )
        yield made[0], made[1]


def has_words(answer: str) -> bool:
    """Return whether the names and texts of an answer on the screen hold some of its text."""
    return bool(answer.partition("Text ")[2].partition("tok/s")[0].strip())


def test_two_windows_pair_and_chat_over_both_within_eight_clicks_and_one_code(
    computers: tuple[Computer, Computer], record_property: Callable[[str, object], None]
) -> None:
    begun = time.monotonic()
    with ExitStack() as stack:
        study, kitchen = (
            Person(stack.enter_context(window(each.system, each.net, each.installed))) for each in computers
        )
        study.press("Continue")
        opened_after = time.monotonic() - begun
        study.press("Show a code")
        code = study.shown_code()
        kitchen.press("Continue")
        kitchen.reads("Study is showing a code. Enter it here.")
        kitchen.types_code(code)
        kitchen.press("Join")
        kitchen.reads("You joined Study’s household: +")
        study.reads("Kitchen joined: +")
        paired_after = time.monotonic() - begun
        study.press("Continue")
        study.reads("This model came with Poolhouse")
        study.reads("Split it over your computers")
        if PICTURES:
            study.screen.picture(Path(PICTURES, f"two-{computers[0].installed.rpartition('/')[2]}.png"))
        study.press("Load")
        study.press(QUESTION)
        asked_after = time.monotonic() - begun
        within(60, lambda: has_words(study.screen.inside(ANSWER, 60)))
        first_after = time.monotonic() - begun
        study.reads("tok/s")
        took = time.monotonic() - begun
        stages = json.loads(computers[0].told("status", "--json"))["loaded"]["stages"]
    clicks, codes = [*study.clicks, *kitchen.clicks], [*study.codes, *kitchen.codes]
    record_property("clicks", len(clicks))
    record_property("codes", len(codes))
    record_property("seconds to the first words", round(first_after, 1))
    print(
        f"window {opened_after:.1f} s, paired {paired_after:.1f} s, asked {asked_after:.1f} s, first words "
        f"{first_after:.1f} s, whole answer {took:.1f} s; {len(clicks)} clicks, {len(codes)} code: {clicks}"
    )
    assert {stage["machine"] for stage in stages} == set(NAMES)
    assert len(clicks) <= MOST_CLICKS
    assert len(codes) == 1
