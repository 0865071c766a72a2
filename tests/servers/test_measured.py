"""A real llama-server is added by its address and key, measured on request, and its figures are kept."""

from __future__ import annotations

from pathlib import Path

from app.api.chat_api import MOST_MEASURED_TOKENS
from tests.node.pool import node
from tests.servers.conftest import KEY, MODEL, LlamaServer


def test_a_server_is_measured_on_request_and_the_figures_are_kept(server: LlamaServer, tmp_path: Path) -> None:
    order = {"name": "lab", "url": server.url, "models": {"smol": server.name}, "cap_tokens": 10_000, "key": KEY}
    with node(tmp_path / "den", "den") as den:
        den.control("POST", "/api/upstreams", order)
        off = den.run("upstream", "measure", "lab", "--yes")
        assert (off.returncode, "lab is turned off, so it cannot be measured" in off.stderr) == (1, True)
        den.control("POST", "/api/upstreams/lab", {"on": True})
        assert "has all models" in den.run("upstream", "test", "lab").stdout
        done = den.run("upstream", "measure", "lab", "--yes", within_s=200)
        said = " ".join(done.stdout.split())
        assert done.returncode == 0, done.stderr
        assert "lab with smol: first token after" in said
        (lab,) = den.control("GET", "/api/upstreams")["upstreams"]
        speed = lab["speeds"]["smol"]
        print(speed)
        assert lab["spent_tokens"] == speed["spent_tokens"] <= MOST_MEASURED_TOKENS
        assert speed["prompt_tokens"] > 256
        assert 0 < speed["ttft_s"] < 60
        assert 1 < speed["decode_tok_s"] < 10_000
        assert [item["streams"] for item in speed["at_once"]][:2] == [1, 2]
        assert den.run("import", str(MODEL), "--name", "smol").returncode == 0
        plan = den.work("/plan", {"model": "smol"})
        assert plan["servers"][0]["decode_tok_s"] == speed["decode_tok_s"]
        shown = " ".join(den.run("plan", "smol").stdout.split())
        assert "lab, another server, has this model too. It was measured at" in shown
        listed = " ".join(den.run("upstream", "list").stdout.split())
        assert "with smol: first token after" in listed
    with node(tmp_path / "den", "den") as den:  # the next start
        (lab,) = den.control("GET", "/api/upstreams")["upstreams"]
        assert lab["speeds"]["smol"] == speed
