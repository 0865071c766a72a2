"""The worker process: it serves several runs, survives errors, and never outlives its node."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import psutil
import pytest

from backends import worker_orders
from backends.contract import GREEDY, Layers, NumberFormat, Role, Sampling, Segment, StageConfig
from backends.frames import Frame, FrameKind, encode_frame
from backends.hidden_state_codec import decode_ids, encode_ids
from testbed import tiny
from tests.backends import cutting, worker_pipe
from tests.backends.worker_pipe import PIPELINE, Pipe, begun, fake_config, opened, step, worker

PROMPT = [3, 70, 71, 72, 9]
SECOND = bytes(range(16, 32))
GONE_WITHIN_SECONDS = 5.0


def prefill(pipe: Pipe, seq: int = 1, ids: list[int] = PROMPT, pos: int = 0) -> Frame:
    segments = (Segment(0, len(ids), pos),)
    pipe.send(step(seq, segments, encode_ids(ids)))
    return pipe.receive()


def whole(pipe: Pipe, options: str = "") -> None:
    """Open a whole fake model and a greedy sequence in slot 0."""
    answer = pipe.tell(opened(fake_config(Role.WHOLE, Layers(0, 4), options)))
    assert isinstance(answer, worker_orders.StageOpened), answer
    answer = pipe.tell(begun(0, len(PROMPT), GREEDY))
    assert isinstance(answer, worker_orders.SequenceBegun), answer


def facts(frame: Frame) -> dict[str, object]:
    assert frame.kind is FrameKind.LOST, frame
    said: dict[str, object] = msgspec.json.decode(bytes(frame.payload))
    return said


def test_several_runs_in_one_worker_say_what_the_whole_says() -> None:
    third = bytes([7]) * 16
    with worker() as pipe:
        whole(pipe)
        said = list(decode_ids(prefill(pipe).payload))
        pipe.tell(opened(fake_config(Role.FIRST, Layers(0, 2)), SECOND))
        pipe.tell(opened(fake_config(Role.LAST, Layers(2, 4)), third))
        pipe.tell(begun(0, len(PROMPT), GREEDY, third))
        segments = (Segment(0, len(PROMPT), 0),)
        pipe.send(step(1, segments, encode_ids(PROMPT), pipeline=SECOND))
        hidden = pipe.receive()
        assert (hidden.kind, hidden.pipeline) == (FrameKind.OUTPUT, SECOND)
        pipe.send(step(1, segments, bytes(hidden.payload), NumberFormat.F32, pipeline=third))
        sampled = pipe.receive()
        assert (sampled.kind, sampled.segments) == (FrameKind.SAMPLED, segments)
        assert list(decode_ids(sampled.payload)) == said


def test_a_step_is_computed_once_and_answered_twice() -> None:
    with worker() as pipe:
        whole(pipe)
        once, again = prefill(pipe), prefill(pipe)
        assert bytes(once.payload) == bytes(again.payload)
        gap = prefill(pipe, 2, [5], pos=9)
        assert (gap.kind, gap.segments) == (FrameKind.NEED_FROM, (Segment(0, 1, len(PROMPT)),))
        assert prefill(pipe, 3, [5], pos=len(PROMPT)).kind is FrameKind.SAMPLED


def test_a_segment_that_is_not_due_samples_nothing() -> None:
    with worker() as pipe:
        whole(pipe)
        early = prefill(pipe, 1, PROMPT[:3])
        assert (early.kind, early.segments, len(early.payload)) == (FrameKind.SAMPLED, (), 0)
        assert len(prefill(pipe, 2, PROMPT[3:], pos=3).segments) == 1


@pytest.fixture
def halves() -> Iterator[tuple[Pipe, Frame]]:
    """A first and a last run in one worker, and the last run's step for the prompt."""
    with worker() as pipe:
        pipe.tell(opened(fake_config(Role.FIRST, Layers(0, 2))))
        pipe.tell(opened(fake_config(Role.LAST, Layers(2, 4)), SECOND))
        pipe.tell(begun(0, len(PROMPT), GREEDY, SECOND))
        hidden = prefill(pipe)
        rows = bytes(hidden.payload)
        yield pipe, step(1, hidden.segments, rows, NumberFormat.F32, pipeline=SECOND)


def following(before: Frame, slot: int = 0) -> Frame:
    segments = (Segment(slot, 1, len(PROMPT)),)
    return Frame(FrameKind.FOLLOW, PIPELINE, 1, 2, NumberFormat.IDS, segments, encode_frame(before))


def test_a_first_run_follows_with_the_sampled_token_in_the_same_trip(halves: tuple[Pipe, Frame]) -> None:
    pipe, last = halves
    pipe.send(following(last))
    sampled, hidden = pipe.receive(), pipe.receive()
    assert (sampled.kind, sampled.pipeline) == (FrameKind.SAMPLED, SECOND)
    assert (hidden.kind, hidden.pipeline, hidden.seq) == (FrameKind.OUTPUT, PIPELINE, 2)
    pipe.send(Frame(FrameKind.FORGET, PIPELINE, 1, 3, segments=(Segment(0, 0, len(PROMPT)),)))
    assert pipe.receive().kind is FrameKind.DONE
    pipe.send(step(4, hidden.segments, bytes(sampled.payload)))
    assert bytes(pipe.receive().payload) == bytes(hidden.payload)


def test_nothing_follows_a_step_that_failed(halves: tuple[Pipe, Frame]) -> None:
    pipe, last = halves
    pipe.send(following(replace(last, epoch=7)))
    assert facts(pipe.receive())["code"] == "stage_bad_step"
    pipe.send(following(last, slot=1))
    assert pipe.receive().kind is FrameKind.SAMPLED
    assert facts(pipe.receive())["code"] == "stage_bad_step"
    pipe.send(step(2, (Segment(0, 1, len(PROMPT)),), encode_ids([4])))
    assert pipe.receive().kind is FrameKind.OUTPUT  # neither has changed the first run


def test_forget_then_replay_gives_the_same_token() -> None:
    with worker() as pipe:
        whole(pipe)
        said = bytes(prefill(pipe).payload)
        pipe.send(Frame(FrameKind.FORGET, PIPELINE, 1, 2, segments=(Segment(0, 0, 2),)))
        done = pipe.receive()
        assert (done.kind, done.segments) == (FrameKind.DONE, (Segment(0, 0, 2),))
        assert bytes(prefill(pipe, 3, PROMPT[2:], pos=2).payload) == said


def test_a_new_epoch_of_the_same_run_starts_empty_and_the_old_one_is_stale() -> None:
    with worker() as pipe:
        whole(pipe)
        prefill(pipe)
        config = fake_config(Role.WHOLE, Layers(0, 4))
        assert isinstance(pipe.tell(opened(config, epoch=2)), worker_orders.StageOpened)
        assert prefill(pipe).kind is FrameKind.STALE
        pipe.send(step(1, (Segment(0, 1, 0),), encode_ids([4]), epoch=2))
        assert pipe.receive().kind is FrameKind.SAMPLED


def test_an_engine_error_is_told_and_the_worker_lives() -> None:
    with worker() as pipe:
        whole(pipe, "error_at=1")
        assert facts(prefill(pipe)) == {
            "code": "stage_failed", "facts": {"cause": "the fake engine was asked to fail"}
        }  # fmt: skip
        assert facts(prefill(pipe))["code"] == "stage_missing"
        whole(pipe)
        assert prefill(pipe).kind is FrameKind.SAMPLED


def test_a_wrong_step_changes_nothing() -> None:
    with worker() as pipe:
        whole(pipe)
        pipe.send(step(1, (Segment(9, 1, 0),), encode_ids([4])))
        assert facts(pipe.receive())["code"] == "stage_bad_step"
        pipe.send(step(1, (Segment(0, 1, 0),), encode_ids([4]), epoch=5))
        assert facts(pipe.receive())["code"] == "stage_bad_step"
        assert prefill(pipe).kind is FrameKind.SAMPLED


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (opened(fake_config(Role.WHOLE, Layers(0, 4), "nonsense")), "model_not_loaded"),
        (opened(fake_config(Role.WHOLE, Layers(0, 4), "bytes_per_layer=99000000"), limit=50 << 20),
         "memory_short"),
        (worker_orders.OpenVocabulary(request=1, path="/nowhere.gguf"), "model_not_loaded"),
        (begun(0, 1, GREEDY), "worker_refused"),
        (worker_orders.Tokenize(request=1, text="x"), "worker_refused"),
    ],
)  # fmt: skip
def test_an_order_that_fails_says_why(order: worker_orders.WorkerOrder, code: str) -> None:
    with worker() as pipe:
        answer = pipe.tell(order)
        assert isinstance(answer, worker_orders.Failed)
        assert (answer.code, answer.request) == (code, order.request)
        whole(pipe)
        assert prefill(pipe).kind is FrameKind.SAMPLED


def test_an_order_with_an_unknown_field_is_refused() -> None:
    with worker() as pipe:
        pipe.send(Frame(FrameKind.TEXT, payload=b'{"order":"close","request":7,"pipeline":"","x":1}'))
        answer = pipe.hear()
        assert isinstance(answer, worker_orders.Failed)
        assert answer.request == 7


@pytest.mark.parametrize("garbage", [b"G" * 64, bytes(64), b"PH\x01\x63" + bytes(60)])
def test_garbage_ends_the_worker_with_a_word(garbage: bytes) -> None:
    with worker() as pipe:
        pipe.write(garbage)
        assert pipe.process.wait(GONE_WITHIN_SECONDS) == 3
        assert "no frame of ours" in pipe.words()


def test_end_of_input_ends_it() -> None:
    with worker() as pipe:
        whole(pipe)
        pipe.close()
        assert pipe.process.wait(GONE_WITHIN_SECONDS) == 0


def test_a_kill_and_a_crash_are_seen_as_the_end_of_its_output() -> None:
    for options in ("", "die_at=1"):
        with worker() as pipe:
            whole(pipe, options)
            if not options:
                pipe.process.kill()
            with pytest.raises((EOFError, BrokenPipeError)):
                prefill(pipe)


@pytest.mark.skipif(sys.platform == "win32", reason="a Job Object does this there")
@pytest.mark.parametrize("busy", [False, True])
def test_it_dies_with_its_parent_also_while_it_computes(busy: bool) -> None:
    """The parent is a small program of its own, so that it can be killed."""
    program = (
        "import os, subprocess, sys, time\n"
        "from tests.backends.worker_pipe import *\n"
        "from tests.backends.test_worker import whole, PROMPT\n"
        "from backends.hidden_state_codec import encode_ids\n"
        "with worker() as pipe:\n"
        f"    whole(pipe, 'hang_at=1')\n"
        f"    if {busy}: pipe.send(step(1, (Segment(0, 5, 0),), encode_ids(PROMPT)))\n"
        "    print(pipe.process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=worker_pipe.ROOT,
        env=worker_pipe.environment(),
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
        gone, _ = psutil.wait_procs([child], GONE_WITHIN_SECONDS)
        assert gone or child.status() == psutil.STATUS_ZOMBIE


def test_what_native_code_prints_does_not_reach_the_pipe(tmp_path: Path) -> None:
    """llama.cpp's own words about a broken file go to stderr; the pipe still carries frames."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with worker() as pipe:
        answer = pipe.tell(worker_orders.OpenVocabulary(request=3, path=str(broken)))
        assert isinstance(answer, worker_orders.Failed)
        assert str(broken) in answer.text
        pipe.close()
        pipe.process.wait(GONE_WITHIN_SECONDS)
        assert str(broken) in pipe.words()


def test_a_real_model_split_over_three_workers_at_f16_answers_like_the_whole(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=6, quant="Q8_0")
    answers = []
    for cuts in ((), (2, 4)):
        runs = [cutting.config(path, *run, 64) for run in cutting.runs(6, cuts)]
        answers.append(_answer(runs, NumberFormat.F16))
    assert answers[0] == answers[1]


def _answer(configs: list[StageConfig], number: NumberFormat) -> list[int]:
    """Eight greedy tokens through one worker for each run."""
    with ExitStack() as stack:
        pipes = [stack.enter_context(worker()) for _ in configs]
        for pipe, config in zip(pipes, configs, strict=True):
            assert isinstance(pipe.tell(opened(config, number=number)), worker_orders.StageOpened)
        pipes[-1].tell(begun(0, len(PROMPT), GREEDY))
        ids, pos, said = PROMPT, 0, []
        for seq in range(8):
            segments = (Segment(0, len(ids), pos),)
            frame = step(seq, segments, encode_ids(ids))
            for pipe in pipes:
                pipe.send(frame)
                out = pipe.receive()
                frame = step(seq, segments, bytes(out.payload), number)
            pos += len(ids)
            ids = [int(token) for token in decode_ids(out.payload)]
            said += ids
        return said


def test_sampling_with_a_seed_is_repeated_after_a_replay() -> None:
    """A continued answer takes the same random numbers as one that was never broken off."""
    hot = Sampling(temperature=1.5, seed=11)
    with worker() as pipe:
        whole(pipe)
        pipe.tell(begun(0, len(PROMPT), hot))
        said = [int(decode_ids(prefill(pipe).payload)[0])]
        for seq in range(2, 8):
            out = prefill(pipe, seq, said[-1:], pos=len(PROMPT) + seq - 2)
            said.append(int(decode_ids(out.payload)[0]))
        pipe.send(Frame(FrameKind.FORGET, PIPELINE, 1, 20, segments=(Segment(0, 0, 0),)))
        pipe.receive()
        shown = PROMPT + said[:4]
        again = worker_orders.BeginSequence(
            request=2, pipeline=PIPELINE.hex(), slot=0, due_from=len(shown), sampling=hot,
            history=tuple(shown), drawn=4,
        )  # fmt: skip
        assert isinstance(pipe.tell(again), worker_orders.SequenceBegun)
        out = prefill(pipe, 21, shown)
        assert int(decode_ids(out.payload)[0]) == said[4]


def test_probe_tells_engines_and_devices() -> None:
    done = subprocess.run(
        [*worker_pipe.command(), "probe"], capture_output=True, env=worker_pipe.environment(),
        check=True,
    )  # fmt: skip
    said = msgspec.json.decode(done.stdout)
    engine = said["engines"][0]
    assert engine["name"] == "llamacpp"
    assert engine["variant"]
    assert engine["devices"][0]["total_bytes"] > 0


def test_an_idle_worker_uses_no_time() -> None:
    with worker() as pipe:
        whole(pipe)
        child = psutil.Process(pipe.process.pid)
        before = -math.inf  # it may tidy up after its answer, and then no more
        while (now := sum(child.cpu_times()[:2])) - before >= 0.05:
            before = now
            time.sleep(0.5)


def test_the_text_of_a_model_through_orders(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=1, vocab=9000)
    with worker() as pipe:
        result = pipe.tell(worker_orders.OpenVocabulary(request=1, path=str(path)))
        assert isinstance(result, worker_orders.VocabularyOpened)
        assert (result.n_vocab, result.end_tokens, result.has_template) == (9000, (1,), True)
        parts = [pipe.hear(), pipe.hear()]
        assert [type(part) for part in parts] == [worker_orders.Pieces, worker_orders.Pieces]
        assert [getattr(part, "last") for part in parts] == [False, True]  # noqa: B009
        prompt = pipe.tell(worker_orders.Render(request=2, messages=({"role": "user", "content": "hi"},)))
        assert isinstance(prompt, worker_orders.Rendered)
        ids = pipe.tell(worker_orders.Tokenize(request=3, text=prompt.text, special=True, bos=False))
        assert isinstance(ids, worker_orders.Tokenized)
        assert ids.ids[0] == 2
        refused = pipe.tell(worker_orders.Render(request=4, messages=({"role": "user"},)))
        assert isinstance(refused, worker_orders.Rendered)  # an absent text is empty, as templates expect


def test_the_last_run_obeys_a_grammar_of_the_whole_models_vocabulary(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=2)
    config = cutting.config(path, Layers(1, 2), Role.LAST, 64)
    hidden = bytes(4 * 64)
    with worker() as pipe:
        assert isinstance(pipe.tell(opened(config)), worker_orders.StageOpened)
        bad = pipe.tell(begun(0, 1, Sampling(grammar="root ::= (")))
        assert isinstance(bad, worker_orders.Failed)
        assert bad.code == "grammar_refused"
        assert isinstance(pipe.tell(begun(0, 1, Sampling(grammar='root ::= "7"'))), worker_orders.SequenceBegun)
        pipe.send(step(1, (Segment(0, 1, 0),), hidden, NumberFormat.F32))
        digit = tiny.FIRST_BYTE + ord("7")
        said = pipe.receive()
        assert said.kind is FrameKind.SAMPLED
        assert decode_ids(said.payload).tolist() == [digit]


def test_a_model_larger_than_its_limit_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", layers=4, width=256, heads=8, kv_heads=8, ffn=256)
    config = cutting.config(path, Layers(0, 4), Role.WHOLE, 256, kv_cells=65536)
    with worker() as pipe:
        answer = pipe.tell(opened(config, limit=64 << 20))
        assert isinstance(answer, worker_orders.Failed)
        assert answer.code == "memory_short"
        assert psutil.Process(pipe.process.pid).memory_info().rss < 200 << 20
        whole(pipe)


def test_of_the_binding_a_worker_has_what_it_needs_and_no_flawed_disk_cache() -> None:
    program = (
        "from backends.llamacpp import binding; import sys\n"
        "binding.load()\n"
        "import backends.worker.service, backends.__main__\n"
        "assert not {'diskcache', 'llama_cpp.llama', 'jinja2'} & {*sys.modules}\n"
        "assert binding.llama_class() is sys.modules['llama_cpp.llama'].Llama\n"
        "assert not hasattr(sys.modules['diskcache'], '__file__')\n"
        "assert not [name for name in sys.modules if name.startswith('diskcache.')]\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], env=worker_pipe.environment(), check=False)
    assert done.returncode == 0
