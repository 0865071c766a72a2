"""The recipes for CI: actions pinned by commit, no secrets, the least rights, and scripts that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.engine_source import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = sorted((PROJECT / ".ci").rglob("*.sh"))
SCRIPT = re.compile(r"\.ci/[\w/.-]+")
ZIZMOR = Path(sys.executable).parent / "zizmor"

BAD = """name: Bad
on: pull_request_target
jobs:
  all:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.pull_request.title }}
"""


def findings(folder: Path) -> tuple[int, str]:
    """Return the exit code of zizmor, which is 0 if it finds nothing, and its words."""
    command = [str(ZIZMOR), "--offline", "--pedantic", "--no-progress", "--color=never", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_found_in_the_workflows() -> None:
    code, words = findings(PROJECT / ".github" / "workflows")
    assert code == 0, words


def test_a_bad_workflow_is_found(tmp_path: Path) -> None:
    place = tmp_path / ".github" / "workflows"
    place.mkdir(parents=True)
    (place / "bad.yml").write_text(BAD, "utf-8")
    code, words = findings(place)
    assert code != 0
    for finding in ("unpinned-uses", "dangerous-triggers", "template-injection", "excessive-permissions"):
        assert finding in words


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_secrets_and_its_scripts_exist(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    assert not re.search(r"\bsecrets\.\w|\binherit\b", text)
    assert "NOT VERIFIED" in text  # until somebody has run it
    scripts = set(SCRIPT.findall(text))
    assert scripts
    assert [script for script in scripts if not (PROJECT / script).is_file()] == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_valid_bash_and_stops_at_the_first_error(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert "set -euo pipefail" in script.read_text("utf-8")
