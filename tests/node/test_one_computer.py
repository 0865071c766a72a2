"""Three nodes on one computer, each of which may lend most of it: a plan counts its memory only once."""

from __future__ import annotations

from pathlib import Path

from app.machine.hardware import devices
from tests.node.pool import paired

GIB = 1 << 30


async def test_three_nodes_on_one_computer_do_not_triple_its_memory(tmp_path: Path) -> None:
    most = devices.memory().total_bytes * 8 // 10 // GIB
    with paired(tmp_path, "den", "attic", "kitchen") as nodes:
        for each in nodes:
            done = each.run("lend", "--memory", f"{most}GiB", "--limit", f"{most}GiB")
            assert done.returncode == 0, done.stderr
        async with nodes[0].client() as host:
            plan = await host.work("POST", "/plan", {"model": "guide", "measure": True})
        free = devices.memory().free_bytes
    lends = [machine["lends_bytes"] for machine in plan["from"]["machines"]]
    assert len(lends) == 3
    assert sum(lends) < 1.1 * free, "what is free changes a little between the plan and now"
    assert min(lends) > 0
