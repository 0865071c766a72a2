"""The tap of S10 finds what is in plain, and the look at listeners finds every one, in other namespaces too."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import listeners, wiretap
from tests.faults.household import LENDERS
from tests.node.pool import TestNode

IDS = [700, 31, 1999, 1204, 860, 77]
SAID = "Open the Pool page and press Add a machine."
CAPTURED = b"".join([*(wiretap.MARK + name.encode() for name in LENDERS), b"\x17\x03\x03", os.urandom(120_000)])
LEAKS = {
    "nothing": (b"", ""),
    "token ids": (array("I", [5, *IDS[1:5], 9]).tobytes(), "token ids"),
    "the other way round": (b"".join(number.to_bytes(2, "big") for number in IDS), "token ids"),
    "as JSON": (b'{"prompt_ids": [700, 31, 1999, 1204, 860, 77]}', "token ids"),
    "a word": (b"a quetzalcoatl!", "quetzalcoatl"),
    "an answer": (b".. and press Add a machine. ..", "an answer"),
}


@pytest.mark.parametrize(("leak", "label"), LEAKS.values(), ids=LEAKS.keys())
def test_what_passes_in_plain_is_found(leak: bytes, label: str) -> None:
    answer = "Open the Pool page" if label != "an answer" else "and press Add a machine."
    text = wiretap.judged(CAPTURED + leak, answer, IDS)
    assert text == (f"in plain: {label}" if label else "")


def test_a_tap_that_is_deaf_proves_nothing() -> None:
    assert "was not captured: attic" in wiretap.judged(CAPTURED[5:], SAID, IDS)
    assert "only" in wiretap.judged(CAPTURED[:200], SAID, IDS)


LISTEN = """
import socket, sys
made = [socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        for host in sys.argv[1:]]
print(*(one.getsockname()[1] for one in made), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("far", [False, pytest.param(True, marks=pytest.mark.root)])
def test_every_listener_of_a_node_is_seen(tmp_path: Path, far: bool) -> None:
    """This includes a view from outside its namespace, where psutil sees none of them."""
    place = f"phl{os.getpid()}"
    enter = []
    if far:
        subprocess.run(["ip", "netns", "add", place], check=True)
        subprocess.run(["ip", "-n", place, "link", "set", "lo", "up"], check=True)
        enter = [sys.executable, "-m", "bench.launch", "--netns", place, "--"]
    hosts = ("0.0.0.0", "127.0.0.1", "127.0.0.1", "::1")
    with subprocess.Popen(
        [*enter, sys.executable, "-c", LISTEN, *hosts],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            peer, control, third, sixth = map(int, process.stdout.readline().split())
            ready = {"peer_port": peer, "control_port": control}
            node = TestNode("den", tmp_path, process, ready)
            assert sorted(listeners.listening(process.pid)) == sorted(
                zip(hosts, (peer, control, third, sixth), strict=True)
            )
            said = listeners.unexpected([node])
            assert said in {f"den listens on {third}", f"den listens on {sixth}"}
            swapped = {"peer_port": control, "control_port": peer}
            open_wide = listeners.unexpected([replace(node, ready=swapped)])
            assert open_wide == "den's control port is open on 0.0.0.0"
            deaf = replace(node, ready=ready | {"peer_port": 1})
            assert listeners.unexpected([deaf]) == "den is not seen to listen on {1}"
        finally:
            process.kill()
            if far:
                subprocess.run(["ip", "netns", "del", place], check=True)
