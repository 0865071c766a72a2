"""The command line with real nodes: two machines pair, share the Guide, answer, and take no nonsense."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import entry, read_header, u32_entry
from app.cli import main
from testbed import tiny
from tests.cli.conftest import Said
from tests.families.changed import rewritten
from tests.families.fixtures import families
from tests.gateway.conftest import free_port

QUESTION = "Why is my laptop left out?"
WRONG_CODE = "The code is wrong. Enter the code that the other machine is showing now. Tries left: 2."
READY_SECONDS = 60
POSIX = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C cannot be sent to one process there")
Run = Callable[..., Said]


def node_at(home: Path, name: str, *more: str) -> subprocess.Popen[str]:
    arguments = ["--home", str(home), "--name", name, "--port", "0", "--bind", "127.0.0.1"]
    return subprocess.Popen(
        [sys.executable, "-m", "app", "node", *arguments, "--no-discovery", "--lend", "512MiB",
         "--threads", "1", "--stop-with-stdin", *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "POOLHOUSE_KEYSTORE": "file"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Two running nodes; their homes."""
    folder = tmp_path_factory.mktemp("real")
    both = folder / "den", folder / "attic"
    nodes = [node_at(home, f"{home.name}-pc") for home in both]
    try:
        for node in nodes:
            assert node.stdout is not None
            ready = json.loads(node.stdout.readline())
            assert set(ready) >= {"id", "name", "peer_port", "control_port"}
        yield both
    finally:
        for node in nodes:
            assert node.stdin is not None
            node.stdin.close()
        codes = [node.wait(timeout=60) for node in nodes]
        for node in nodes:
            assert node.stdout is not None
            node.stdout.close()
    assert codes == [0, 0]


@pytest.fixture
def den(homes: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> Run:
    return _runner(homes[0], capfd)


@pytest.fixture
def attic(homes: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> Run:
    return _runner(homes[1], capfd)


def _runner(home: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Said:
        code = main([*arguments, "--home", str(home)])
        return Said(code, *capfd.readouterr())

    return run


@pytest.fixture
def pool(den: Run, attic: Run) -> Run:
    """The den's command line, once both machines are one household."""
    if len(den("machines", "--json").json["machines"]) > 1:
        return den
    window = den("pair", "--open", "--json").json
    wrong = "111111" if window["code"] != "111111" else "222222"
    refused = attic("pair", window["address"], "--code", wrong)
    assert (refused.code, refused.err) == (1, f"{WRONG_CODE}\n")
    paired = attic("pair", window["address"], "--code", window["code"])
    assert paired.code == 0
    assert paired.out.startswith("Paired with den-pc. ")
    ends = time.monotonic() + READY_SECONDS
    while not all(machine["online"] for machine in den("machines", "--json").json["machines"]):
        assert time.monotonic() < ends
        time.sleep(0.05)
    return den


def test_a_split_model_says_what_the_whole_one_says(pool: Run, attic: Run) -> None:
    ask = ("ask", QUESTION, "--temperature", "0", "--json")
    loaded = pool("load", "guide", "--split", "3,2,3", "--number", "f32")
    assert loaded.code == 0, loaded.err
    assert "split over 2 machines" in loaded.out
    split = pool(*ask).json
    assert [stage["machine"] for stage in split["placement"]] == ["den-pc", "attic-pc", "den-pc"]
    assert "guide" in pool("status").out
    assert attic("status", "--json").json["machines"]
    assert pool("load", "guide", "--split", "8").code == 0
    whole = pool(*ask).json
    assert len(whole["placement"]) == 1
    assert split["token_ids"] == whole["token_ids"]
    assert split["text"] == whole["text"] != ""


@pytest.mark.long
def test_the_benchmark_counts_every_token(pool: Run) -> None:
    arguments = ("--prompt", "48", "--output", "8", "--streams", "1,3", "--runs", "2")
    report = pool("bench", "guide", "--split", "3,2,3", *arguments, "--json").json
    alone, together = report["results"]
    assert (alone["tokens"], together["tokens"]) == ([8] * 2, [8] * 6)
    assert alone["reused_tokens"] == together["reused_tokens"] == 0
    assert [stage["machine"] for stage in alone["stages"]] == ["den-pc", "attic-pc", "den-pc"]
    assert alone["ttft_s"]["mean"] > 0
    assert together["total_tok_s"]["mean"] > 0


@pytest.mark.long
@POSIX
def test_ctrl_c_frees_the_pool(pool: Run, homes: tuple[Path, Path]) -> None:
    assert pool("load", "guide", "--split", "3,2,3").code == 0
    with subprocess.Popen(
        [sys.executable, "-m", "app", "ask", "x", "--raw", "-n", "900", "--home", str(homes[0])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130)  # 0: it had ended before the signal came
    ends = time.monotonic() + READY_SECONDS
    while pool("status", "--json").json["answers"]["running"]:
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert pool("ask", QUESTION, "--temperature", "0").code == 0


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("load", "guide", "--split", "3,2,4"), "add up to 8"),
        (("load", "guide", "--context", "999999"), "999,999"),
        (("plan", "nothing-like-it"), "nothing-like-it"),
        (("rm", "guide", "--yes"), "is part of the app"),
        (("remove", "den-pc", "--yes"), ""),
        (("remove", "nobody", "--yes"), "nobody"),
        (("remove", "nobody"), "There is no machine called nobody"),
        (("ask", "x " * 9000, "--raw", "--model", "guide"), ""),
        (("pair", "127.0.0.1:1", "--code", "123456"), ""),
        (("node",), "already"),
    ],
)
def test_nonsense_gets_one_sentence_and_the_node_goes_on(pool: Run, command: tuple[str, ...], named: str) -> None:
    said = pool(*command)
    assert (said.code, said.out) == (1, "")
    lines = [line for line in said.err.splitlines() if not line.endswith(("…", "%"))]
    assert len(lines) == 1
    assert named in lines[0]
    assert "fault" not in lines[0]
    assert pool("status").code == 0


@pytest.mark.long
def test_import_use_and_delete_a_file(pool: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"GGUF is not all it takes")
    refused = pool("import", str(wrong))
    assert (refused.code, refused.out) == (1, "")
    file = tmp_path / "small.gguf"
    tiny.llama(file)
    assert pool("import", str(file), "--name", "small").code == 0
    assert "small" in [model["name"] for model in pool("models", "--json").json["models"]]
    output = pool("ask", "abc", "--raw", "--model", "small", "-n", "4", "--json")
    assert output.json["model"] == "small"
    assert pool("unload").out == "small is unloaded.\n"
    assert pool("rm", "small", "--yes").code == 0
    assert "small" not in [model["name"] for model in pool("models", "--json").json["models"]]


def broken(path: Path) -> Path:
    """A small model whose third layer computes nothing that is a number."""
    tiny.llama(path, layers=4, seed=7)
    tensor = read_header(path).tensors["blk.2.ffn_down.weight"]
    with path.open("r+b") as file:
        file.seek(tensor.offset)
        file.write(b"\0\x7e" * 64)  # NaN, in f16
    return path


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("split", ["1,2,1", "2,1,1", "4"])
def test_a_model_without_finite_numbers_is_told_once_and_no_machine_is_lost(
    pool: Run, attic: Run, tmp_path: Path, split: str
) -> None:
    """Covers the first machine, the other one, and the whole model. No other model then answers unasked."""
    assert pool("unload").code == 0
    assert pool("import", str(broken(tmp_path / "broken.gguf")), "--name", "broken").code == 0
    said = pool("load", "broken", "--split", split)
    steps = ("…", "%")
    lines = [line for line in said.err.splitlines() if not line.endswith(steps)]
    assert (said.code, len(lines)) == (1, 1), lines
    assert "not finite" in lines[0]
    assert ("attic-pc" in lines[0]) == (split != "4")  # who said so, beside the file
    assert "damaged" in lines[0]
    assert "lost" not in lines[0]
    output = pool("ask", QUESTION, "-n", "4")
    assert (output.code, output.out) == (1, "")
    assert "broken could not be loaded" in output.err
    assert pool("rm", "broken", "--yes").code == 0
    unnamed = pool("ask", QUESTION, "-n", "4")  # what is removed stands in nobody's way
    assert (unnamed.code, "the Guide answers" in unnamed.err) == (0, True)
    by_name = pool("ask", QUESTION, "-n", "4", "--model", "guide")
    assert by_name.code == 0
    assert "the Guide answers" not in by_name.err
    assert all(machine["online"] for machine in pool("machines", "--json").json["machines"])


def test_the_guide_says_first_that_it_answers(pool: Run) -> None:
    assert pool("unload").code == 0
    output = pool("ask", QUESTION, "-n", "4", "--json")
    assert output.json["model"] == "guide"
    assert "the Guide answers" in output.json["said_first"]


@pytest.mark.long
def test_an_id_is_taken_wherever_a_name_is(pool: Run, attic: Run, tmp_path: Path) -> None:
    imported = pool("import", str(tiny.llama(tmp_path / "by-id.gguf", seed=9)), "--json").json
    [listed] = [model for model in pool("models", "--json").json["models"] if model["name"] == "by-id"]
    model = listed["id"]
    assert imported["model"]["id"] == model
    assert pool("plan", model, "--json").json["model"] == "by-id"
    assert pool("load", model, "--json").json["loaded"]["model"] == "by-id"
    assert pool("load", model, "--beside").code == 0  # it is that one, and not beside itself
    assert pool("status", "--json").json["beside"] == []
    request = pool("ask", "abc", "--raw", "--model", model, "-n", "4", "--json").json
    assert request["model"] == "by-id"
    assert request["said_first"].endswith("refers to by-id.")
    assert pool("bench", model, "--prompt", "8", "--output", "2", "--streams", "1", "--runs", "1").code == 0
    assert pool("unload", model).out == "by-id is unloaded.\n"
    port = free_port()
    assert pool("api", "on", "--port", str(port), "--may-load").code == 0
    key = pool("api", "key", "--json").json["key"]
    for path, body in (
        ("/v1/completions", {"prompt": "abc"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "abc"}]}),
        ("/v1/responses", {"input": "abc"}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "abc"}], "max_tokens": 2}),
        ("/api/generate", {"prompt": "abc", "stream": False}),
        ("/api/chat", {"messages": [{"role": "user", "content": "abc"}], "stream": False}),
        ("/api/show", {}),
    ):
        code, answer = posted(port, key, path, {"model": model, **body})
        assert code == 200, (path, answer)
    assert pool("api", "off").code == 0
    machine = attic("status", "--json").json["node"]["id"]
    assert pool("machines", "--json").json["machines"]
    assert pool("roles", machine, "--host", "--lender").code == 0
    assert pool("unload", model).code == 0  # a request had loaded it
    assert pool("rm", model, "--yes").code == 0
    assert "by-id" not in [model["name"] for model in pool("models", "--json").json["models"]]


def posted(port: int, key: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


# family, what is taken from its file, what is put in, the split or None where the shelf refuses it,
# what the sentence says
ODD_FILES = {
    "a list of the wrong length": (
        "lfm2", "lfm2.attention.head_count_kv",
        entry("lfm2.attention.head_count_kv", tensor_types.U32, [0, 2] * 9, is_list=True), None,
        "18 values for 6 layers",
    ),
    "a list that the tensors contradict": (
        "qwen3-5", "qwen35.attention.recurrent_layers",
        entry("qwen35.attention.recurrent_layers", tensor_types.BOOL, [False, True] * 4, is_list=True), "8",
        "'blk.0.attn_qkv.weight' has wrong shape",
    ),
    "a size that the engine does not survive": (
        "qwen3-5", "qwen35.ssm.inner_size", u32_entry("qwen35.ssm.inner_size", 1), "8",
        "GGML_ASSERT",
    ),
    "a key that is missing": (
        "granite", "granite.attention.layer_norm_rms_epsilon", b"", "4", "key not found in model",
    ),
    "a tensor that nobody knows, on the other machine": ("llama", "", b"", "1,2,1", "attic-pc"),
}  # fmt: skip


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("label", ODD_FILES)
def test_an_odd_file_costs_a_sentence_and_the_node_goes_on(pool: Run, attic: Run, tmp_path: Path, label: str) -> None:
    family, gone, more, split, named = ODD_FILES[label]
    odd = rewritten(
        families()[family].path, tmp_path / "odd.gguf", without=gone.split(),
        more=[more] if more else [],
        again={} if gone else {"blk.1.odd.weight": "blk.1.attn_norm.weight"},
    )  # fmt: skip
    said = pool("import", str(odd), "--name", "odd")
    if split is not None:
        assert said.code == 0
        said = pool("load", "odd", "--split", split)
        assert pool("rm", "odd", "--yes").code == 0
    assert (said.code, said.out) == (1, "")
    steps = ("…", "%")  # of slow copies also the quarters
    lines = [line for line in said.err.splitlines() if not line.endswith(steps)]
    assert len(lines) == 1, lines
    assert named in lines[0]
    assert "/llama" not in lines[0]  # where the engine was compiled is nobody's business
    assert pool("ask", "x", "--raw", "--model", "guide", "-n", "2").code == 0
    assert attic("status").code == 0


def test_the_doctor_finds_two_healthy_machines(pool: Run) -> None:
    report = pool("doctor", "--json").json
    assert report["ok"], report


@pytest.mark.long
@POSIX
@pytest.mark.parametrize("heard", ["Starting", "Loading"])
def test_ctrl_c_in_the_real_demo_leaves_nothing(tmp_path: Path, heard: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app", "demo", "--machines", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        while not process.stderr.readline().startswith(heard):
            assert process.poll() is None
        time.sleep(0.5)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_the_real_demo_answers(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--json"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert len({stage["machine"] for stage in report["answer"]["placement"]}) == 3
    assert "six-digit code" in report["answer"]["text"]
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_the_docs_and_their_picture_show_what_the_demo_prints(tmp_path: Path) -> None:
    """All but the figures, which are of one run."""
    shown = subprocess.run(
        [sys.executable, "-m", "app", "demo"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "96"},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "so the Guide answers" not in shown.stderr, "it has just loaded the Guide"
    project = Path(__file__).parents[2]
    page = (project / "docs" / "commands.md").read_text(encoding="utf-8")
    picture = (project / "docs" / "demo.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"<text [^>]*y=\"([\d.]+)\"[^>]*>(.*?)</text>", picture)
    by_line = sorted(drawn, key=lambda item: float(item[0]))  # stable: within a line from left to right
    output = without_figures(shown.stdout)
    assert output in without_figures(page)
    assert output in without_figures(html.unescape("".join(text for _, text in by_line)))


def without_figures(text: str) -> str:
    """Return the text without figures, their units of time, and white space, which is broken elsewhere."""
    return re.sub(r"[\d.,]+\s+m?s\b|[\d.,\s]+", "", text)
