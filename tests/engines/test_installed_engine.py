"""MLX from the package index: a real node installs it, computes the Guide with it, and deletes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.test_engines_on_nodes import uses
from tests.node.pool import TestNode, node

pytestmark = pytest.mark.timeout(300)
ARCHITECTURE_OF_THE_GUIDE = "llama"


def asked(den: TestNode) -> None:
    """Load the Guide afresh and ask it."""
    den.run("unload", within_s=60)
    answer = den.run("ask", "What is Poolhouse?", "--max-tokens", "8", within_s=60)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_mlx_is_installed_computes_and_is_deleted(tmp_path: Path) -> None:
    with node(tmp_path / "den", "den") as den:
        done = den.run("engine", "add", "mlx", "--yes", within_s=180)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "MLX 0.32.4: used where it is faster" in done.stdout
        state = den.control("GET", "/engines")
        assert ARCHITECTURE_OF_THE_GUIDE in state["added"]["architectures"]
        mlx = next(each for each in state["available"] if each["engine"] == "mlx")
        assert (mlx["installed"], mlx["preferred"]) == ("0.32.4", True)
        asked(den)
        assert not any(uses(worker, "libmlx") for worker in den.workers())  # on processors, it is slower
        planned = den.run("plan", "guide", within_s=120)
        assert planned.returncode == 0, planned.stdout + planned.stderr
        assert den.control("GET", "/engines")["added"]["slower"] == ["llama Q8_0"]
        done = den.run("engine", "prefer", "mlx", within_s=60)
        assert done.returncode == 0, done.stdout + done.stderr
        asked(den)
        assert any(uses(worker, "libmlx") for worker in den.workers())
        module = den.root / "added-engines" / "mlx" / "mlx" / "nn" / "utils.py"
        module.write_text("import os\n", "utf-8")
        refused = den.run("engine", "prefer", "mlx", within_s=60)
        assert refused.returncode == 1
        assert "mlx/nn/utils.py of MLX was changed" in refused.stderr
        removed = den.run("engine", "remove", "mlx", "--yes", within_s=60)
        assert removed.returncode == 0, removed.stdout + removed.stderr
        state = den.control("GET", "/engines")
        assert "added" not in state or state["added"] is None
        assert not (den.root / "added-engines" / "mlx").exists()
