"""`make prove`: measure what the checks catch and what the diagnosis names, and write it into docs/proof.md."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graders.authoring import UsageError, slugs
from proof import parts, results

PROCESSES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove the exercises named, or all; 1 where an aim is not reached, or with --fresh where the page is stale."""
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="exercises to prove; all, if none is named")
    parser.add_argument("--fresh", action="store_true", help="prove nothing; say whether docs/proof.md is still true")
    told = parser.parse_args(arguments)
    if told.fresh:
        for slug in sorted(set(slugs()) - set(results.load())):
            print(f"{slug} was never proved; python -m proof {slug} does it")
        return _say(results.stale(results.load()), "docs/proof.md is fresh")
    unknown = set(told.slugs) - set(slugs())
    if unknown:
        raise UsageError(f"there is no exercise {', '.join(sorted(unknown))}; there are: {', '.join(slugs())}")
    proved = {}
    for slug, proof in prove(told.slugs or slugs()):
        proved[slug] = proof
        results.save({**results.load(), **proved})
        print("\n".join(results.lines({slug: proof})), flush=True)
    return _say(results.missed(proved), "every aim is reached")


def prove(wanted: Sequence[str]) -> Iterator[tuple[str, results.Data]]:
    """(slug, result) of each exercise, as soon as it is proved."""
    jobs = [job for slug in wanted for job in parts.jobs(slug)]
    pool = _pool()
    try:
        with _progress() as progress:
            task = progress.add_task("", total=len(jobs))
            measured = _watched(zip(jobs, pool.map(parts.done, jobs), strict=True), progress, task)
            for slug, mine in itertools.groupby(measured, key=lambda one: one[0][0]):
                tallies: dict[str, list[Any]] = {}
                for (_, part, _), tally in mine:
                    tallies.setdefault(part, []).append(tally)
                yield slug, results.result(slug, {part: parts.merged(tally) for part, tally in tallies.items()})
    finally:
        pool.shutdown(cancel_futures=True)


def _pool() -> ProcessPoolExecutor:
    # Spawned, since threads of an imported library do not survive a fork; with one thread each, or they wait in turn.
    for library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), initializer=parts.patient)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _watched(measured: Any, progress: Progress, task: Any) -> Iterator[Any]:
    for one in measured:
        slug, part, answer = one[0]
        progress.update(task, advance=1, description=f"{slug}: {part} of {answer}")
        yield one


def _say(problems: list[str], fine: str) -> int:
    print("\n".join(problems) or fine)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as problem:
        sys.exit(str(problem))
