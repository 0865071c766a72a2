"""The programs offered to an owner: their own, largest first, without the system's and ours."""

from __future__ import annotations

from app.machine.sensors.owner_programs import Process, program_names, running_programs


def test_names() -> None:
    processes = [
        Process(1, "/usr/games/steam", 10),
        Process(2, "/opt/blender/blender", 50),
        Process(3, "/usr/games/steam", 45),
        Process(4, "/usr/libexec/gvfsd", 99),
        Process(5, "/opt/poolhouse/poolhouse", 99),
        Process(6, "C:\\Windows\\System32\\svchost.exe", 99),
        Process(7, "C:\\Games\\Chess.EXE", 1),
        Process(8, "", 99),
        Process(10, "/memfd:sealed (deleted)", 99),
        Process(11, "/memfd:sealed-3f2a", 99),
        Process(9, "/tmp/bad\nname", 99),
    ]
    assert program_names(processes, frozenset({5})) == ["steam", "blender", "chess"]
    assert len(program_names([Process(n, f"/a/p{n}", n) for n in range(500)], frozenset())) == 60


def test_what_runs_here() -> None:
    names = running_programs()
    assert len(names) == len(set(names)) <= 60
    assert all(names)
