"""`make bench`: stock nbgrader, cold nbclient and ours on the same hand-ins, start-up counted on every side."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench import sides
from bench.sides import Run

T = TypeVar("T")
AIMS = {
    "ratio_vs_stock_wall": "at least 40",
    "ratio_vs_nbclient_2proc": "at least 20",
    "overhead_per_handin_s": "at most 0.15",
    "cost_growth_200_over_20": "at most 1.1",
}


def main() -> int:
    """Run all sides, print the table, and last the four figures."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few hand-ins only: tries the benchmark, measures little"
    )
    few, many = (2, 4) if parser.parse_args().quick else (20, 200)
    _say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {few} and {many} solved hand-ins of {sides.SLUG}")
    with tempfile.TemporaryDirectory(prefix="qkv-bench-") as folder:
        runs, floors = measure(Path(folder), few, many)
    show(runs, statistics.fmean(floors))
    for name, value in figures(runs, statistics.fmean(floors)).items():
        print(f"{name} {value:.3g}")
    return 0


def measure(folder: Path, few: int, many: int) -> tuple[list[Run], list[float]]:
    """Every side's run, and the floor, before and after, since a machine's pace changes.

    The run that most figures rest on is made three times, at the start, in the midst and at the end.
    """

    def ours(number: int, jobs: int, again: str = "") -> Run:
        what = f"qkv grade, {number} hand-ins, {_processes(jobs)}{again and ', again'}"
        return _told(what, lambda: sides.ours(folder / f"{number}-{jobs}{again}", number, jobs))

    floors = [_told("the student's cells alone", lambda: sides.floor(folder / "floor-1", few))]
    runs = [ours(number, jobs) for number in (few, many) for jobs in (1, 2)]
    floors.append(_told("the student's cells alone", lambda: sides.floor(folder / "floor-2", few)))
    runs.append(_told("cold nbclient in two processes", lambda: sides.cold_nbclient(folder / "cold", few)))
    runs.append(ours(many, 2, again="-2"))
    runs.append(_told("stock nbgrader", lambda: sides.stock(folder / "stock", few)))
    runs.append(ours(many, 2, again="-3"))
    return runs, floors


def figures(runs: list[Run], floor: float) -> dict[str, float]:
    """The four figures that the aims are set for.

    Of what was run three times, the median. The overhead is what a hand-in more costs one worker, beyond its own cells.
    The growth compares the last tenth of the hand-ins with the second, since the first holds the start.
    """
    few, many = min(run.many for run in runs), max(run.many for run in runs)
    ours = {(run.many, run.processes): run for run in runs if run.done}
    others = {run.side: run for run in runs if not run.done}
    twos = [run for run in runs if run.done and (run.many, run.processes) == (many, 2)]
    rate, width = statistics.median(run.rate for run in twos), max(many // 10, 1)
    growths = [run.cost(many - width + 1, many) / run.cost(width + 1, 2 * width) for run in twos]
    values = (
        rate / others["stock nbgrader autograde"].rate,
        rate / others["cold nbclient"].rate,
        ours[many, 1].cost(few + 1, many) - floor,
        statistics.median(growths),
    )
    return dict(zip(AIMS, values, strict=True))


def show(runs: list[Run], floor: float) -> None:
    """The table."""
    memory = "peak MB (own): worker, student"
    print(f"\n{'':26}{'hand-ins':>9}{'processes':>10}{'seconds':>9}{'s each':>8}{'a second':>9}  {memory}")
    print(f"{'the cells alone':26}{'':9}{1:>10}{'':9}{floor:>8.3f}{1 / floor:>9.2f}")
    for run in sorted(runs, key=lambda run: (run.side, run.many, run.processes)):
        print(
            f"{run.side:26}{run.many:>9}{run.processes:>10}{run.seconds:>9.1f}{1 / run.rate:>8.3f}{run.rate:>9.2f}"
            f"  {_memory(run)}".rstrip()
        )
    print("\naims: " + ", ".join(f"{name} {aim}" for name, aim in AIMS.items()))


def _memory(run: Run) -> str:
    peaks = {"worker": run.peaks.worker, "student": run.peaks.student}
    return ", ".join(f"{peak / 1e6:.0f} ({run.peaks.own[kind] / 1e6:.0f})" for kind, peak in peaks.items() if peak)


def _processes(number: int) -> str:
    return "one worker" if number == 1 else f"{number} workers"


def _told(what: str, measured: Callable[[], T]) -> T:
    _say(f"{what} …")
    result = measured()
    _say(f"    {result.seconds:.1f} s" if isinstance(result, Run) else f"    {result:.3f} s each")
    return result


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
