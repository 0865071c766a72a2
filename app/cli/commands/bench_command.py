"""The command `poolhouse bench`, which measures the speed of the pool by the method of DESIGN.md 8."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from app.cli.commands.load_commands import NumberName
from app.cli.node_calls import ask_node
from app.cli.options import ContextOption, HomeOption, JsonOption, ModelArgument, SplitOption, UsersOption, read_counts
from app.cli.output import Output
from app.core.errors import AppError
from app.core.reasons import said

if TYPE_CHECKING:
    from app.api.plans import Plan
    from app.cli.benchmark import Bench, Task
    from app.client import NodeClient

Json = dict[str, Any]
MAX_CHOSEN_SEED = 1 << 31


def bench(  # noqa: PLR0913  one for each option
    model: ModelArgument,
    prompt: Annotated[int, typer.Option("--prompt", min=1, help="Tokens in each prompt.")] = 512,
    output: Annotated[int, typer.Option("--output", min=2, help="Tokens in each answer.")] = 256,
    streams: Annotated[
        str,
        typer.Option(
            "--streams", metavar="1,8", help="How many answers to run at once. Each number in the list is measured."
        ),
    ] = "1,8",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Repetitions of each measurement.")] = 5,
    split: SplitOption = None,
    context: ContextOption = None,
    users: UsersOption = None,
    number: Annotated[
        Optional[NumberName],  # noqa: UP045
        typer.Option("--number", help="The number format between machines.", show_default=False),
    ] = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--seed", min=0, help="The seed of the random prompts; a new one by default.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the pool: time to first token and tokens per second, for one answer and for several at once."""
    from app.cli.benchmark import Task

    task = Task(
        model=model,
        prompt=prompt,
        output=output,
        streams=tuple(read_counts(streams, "1,8")),
        runs=runs,
        # A new seed each time, because cached prompts would make the pool look faster.
        seed=secrets.randbelow(MAX_CHOSEN_SEED) if seed is None else seed,
        load={
            "split": read_counts(split) if split is not None else None,
            "context": context,
            "users": users,
            "number": number.value if number else None,
        },
    )
    out = Output(as_json)
    ask_node(home, lambda node: _run_benchmark(node, out, task))


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count} answers"


async def _run_benchmark(node: NodeClient, out: Output, task: Task) -> None:
    """Run the benchmark and show its results.

    The results are shown before the previous model is restored, because restoring may fail or be interrupted.
    """
    from app.cli.benchmark import Bench
    from app.cli.progress import show_progress

    with _answer_bar(out, task.steps) as count:
        benchmark = Bench(node, task, count)
        try:
            with show_progress(out) as show:
                placed = await benchmark.load(show)
            out.note(f"Measuring: {_answers(task.steps)} of {task.output} tokens.")
            results = await benchmark.measure()
        except asyncio.CancelledError:  # a user who presses Ctrl-C does not want to wait for a load
            if benchmark.has_loaded:
                out.note("The model is still loaded with the benchmark's short context.")
            raise
        except AppError:
            await _restore(benchmark, out)
            raise
    report = _report(task, placed, results)

    from app.cli.benchmark import bench_view

    try:
        out.result(report, lambda: bench_view(report))
    finally:  # writing fails if the reader of the output has exited
        await _restore(benchmark, out)


async def _restore(benchmark: Bench, out: Output) -> None:
    """Restore the previous placement. A failure is reported in addition to the results, not instead of them."""
    from app.cli.progress import show_progress

    try:
        with show_progress(out) as show:
            await benchmark.restore(show)
    except AppError as error:
        out.note(said(error))
    except asyncio.CancelledError:  # Ctrl-C ends the load and the command; everything else is done
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    else:
        return
    out.note("The model that was loaded before the benchmark was not loaded again.")


def _report(task: Task, placed: Plan, results: list[Json]) -> Json:
    import msgspec

    from app import __version__

    return {
        "version": __version__,
        "model": task.model,
        "prompt_tokens": task.prompt,
        "output_tokens": task.output,
        "seed": task.seed,
        "placement": msgspec.to_builtins(placed.stages),
        "number": placed.number,
        "context": placed.context,
        "users": placed.users,
        "results": results,
    }


@contextmanager
def _answer_bar(out: Output, steps: int) -> Iterator[Any]:
    """Show a bar of finished answers if the output is a terminal."""
    if not out.is_live:
        yield lambda finished: None
        return
    from app.cli.progress import bars

    bar = bars(out.stderr)
    tasks: list[Any] = []

    def update(finished: int) -> None:
        if not tasks:  # not earlier: loading shows its own bars
            bar.start()
            tasks.append(bar.add_task("Measuring", total=steps, unit="answers"))
        bar.update(tasks[0], completed=finished)

    try:
        yield update
    finally:
        bar.stop()
