"""A limited link and a CPU quota really limit, and leave nothing behind. Root and Linux only."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.children import Children, Place
from bench.quota import NoQuota, quotas
from bench.shaped_link import HERE, NoLink, busy_rate, limited_link, sampled

pytestmark = [
    pytest.mark.alone,
    pytest.mark.root,
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root"),
]
SIZE = 4_000_000
MBIT = 100
FETCH = """
import json, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    n = sum(iter(lambda: len(s.recv(65536)), 0))
print(json.dumps({"n": n}), flush=True)
"""
SPIN = """
import json, time
end = time.monotonic() + 1.0
while time.monotonic() < end: pass
print(json.dumps({"cpu": time.process_time()}), flush=True)
time.sleep(30)
"""


def test_a_link_limits_and_goes(tmp_path: Path) -> None:
    try:
        with limited_link(MBIT) as link, Children(tmp_path) as family:
            with socket.create_server((HERE, 0)) as server:
                threading.Thread(target=send_once, args=(server,), daemon=True).start()
                port = str(server.getsockname()[1])
                with sampled(link) as samples:
                    argv = [sys.executable, "-c", FETCH, HERE, port]
                    child = family.start("fetch", argv, Place(netns=link.namespace))
                    assert child.hear(30.0) == {"n": SIZE}
            moved = samples.points[-1][1] - samples.points[0][1]
            rate = busy_rate(samples.points)
    except NoLink as why:
        pytest.skip(str(why))
    assert SIZE < moved < 1.2 * SIZE
    assert rate is not None
    assert rate < 1.25 * MBIT * 125_000
    shown = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert link.namespace not in shown.stdout


def send_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(bytes(SIZE))


def test_a_quota_limits_and_goes(tmp_path: Path) -> None:
    try:
        with quotas([0.25]) as (group,), Children(tmp_path) as family:
            child = family.start("spin", [sys.executable, "-c", SPIN], Place(cgroup=group))
            assert child.hear(30.0)["cpu"] < 0.5
    except NoQuota as why:
        pytest.skip(str(why))
    assert not group.exists()
