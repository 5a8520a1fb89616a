"""`make attacks`: tries every attack on stock nbgrader and on ours, and writes what came of it into docs/security.md.

Run with names of attacks it prints their rows and writes nothing.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from attacks import ATTACKS, Attack
from attacks.arena import REPOSITORY, open_arena
from attacks.assignments import ASSIGNMENTS
from attacks.outcome import Outcome
from attacks.stock import open_stock
from graders.sandbox.box import available_kinds
from graders.sandbox.mounts import BWRAP

PAGE = REPOSITORY / "docs" / "security.md"
BEGIN, END = "<!-- from here: written by `make attacks` -->", "<!-- up to here -->"
NOTHING, NO_COUNTERPART = "nothing", "does not apply"
STOCK = f"stock nbgrader {version('nbgrader')}"


@dataclass(frozen=True)
class Row:
    """An attack and what came of it; `stock` is None where stock nbgrader has nothing that it could be tried on."""

    attack: Attack
    stock: Outcome | None
    ours: Outcome

    def __str__(self) -> str:
        stock = NO_COUNTERPART if self.stock is None else in_words(self.stock)
        cells = (f"`{self.attack.name}`", self.attack.tries, stock, in_words(self.ours))
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def in_words(outcome: Outcome) -> str:
    """What an attack got, as a cell of the table: marks beyond those that it deserves in bold, then all else."""
    gained = "**full marks**" if outcome.full else f"**{outcome.score:g} of {outcome.max_score:g}**"
    return "; ".join([gained if outcome.earned else NOTHING, *filter(None, [outcome.end]), *outcome.harm])


def main(words: Sequence[str] | None = None) -> int:
    """Try the attacks; print the rows of those named, or write the page with all."""
    parser = argparse.ArgumentParser(prog="make attacks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks to try; all, if none is named")
    parser.add_argument("--jobs", type=int, default=2, help="attacks on stock nbgrader at the same time")
    options = parser.parse_args(words)
    if unknown := set(options.names) - set(ATTACKS):
        parser.error(f"no attack is called {', '.join(sorted(unknown))}")
    if not shutil.which(BWRAP):
        parser.error(
            "stock nbgrader is attacked in bubblewrap only, so that nobody is hurt: apt-get install bubblewrap"
        )
    kind, rows = try_all(options.names or list(ATTACKS), options.jobs)
    if options.names:
        print(*rows, sep="\n")
    else:
        write(PAGE, "\n\n".join([summary(rows, kind), *tables(rows)]))
    return 0


def try_all(names: Sequence[str], jobs: int) -> tuple[str, list[Row]]:
    """The kind of our sandbox, and a row for each attack in `names`."""
    kind = available_kinds()[0]
    ours: dict[str, Outcome] = {}
    theirs: dict[str, Outcome] = {}
    for about, assignment in ASSIGNMENTS.items():
        those = [name for name in names if ATTACKS[name].assignment == about]
        if not those:
            continue
        course = tempfile.TemporaryDirectory(prefix="qkv-attacks-")
        with course as folder, open_arena(Path(folder), kind, assignment) as arena:
            ours |= {name: _tried("ours", name, arena.attacked_by) for name in those}
        applying = [name for name in those if not ATTACKS[name].only_ours]
        if applying:
            with open_stock(assignment) as stock, ThreadPoolExecutor(jobs) as pool:
                outcomes = pool.map(functools.partial(_tried, STOCK, attacked_by=stock.attacked_by), applying)
                theirs |= dict(zip(applying, outcomes, strict=True))
    return kind, [Row(ATTACKS[name], theirs.get(name), ours[name]) for name in names]


def _tried(side: str, name: str, attacked_by: Callable[[str], Outcome]) -> Outcome:
    outcome = attacked_by(name)
    print(f"{side}: {name}: {in_words(outcome)}", file=sys.stderr, flush=True)
    return outcome


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """A table for each theme, below the sentence with which its module begins."""
    for theme, those in groupby(rows, key=lambda row: row.attack.theme):
        title = str(import_module(f"attacks.{theme}").__doc__).splitlines()[0].split(". ")[0].rstrip(".")
        yield "\n".join(
            [f"### {title}", "", f"| attack | tries | {STOCK} | ours |", "|---|---|---|---|", *map(str, those)]
        )


def summary(rows: Sequence[Row], kind: str) -> str:
    """How many attacks got something, on either side."""
    stock = [row.stock for row in rows if row.stock is not None]
    paid = sum(bool(outcome.earned) for outcome in stock)
    full = sum(bool(outcome.earned) and outcome.full for outcome in stock)
    harmed = sum(bool(outcome.harm) for outcome in stock)
    ours = sum(bool(row.ours.earned or row.ours.harm) for row in rows)
    return (
        f"{len(rows)} attacks. On {STOCK}, where {len(stock)} of them can be tried, {paid} earned marks that their "
        f"code does not deserve ({full} of them full marks), and {harmed} did other harm. On ours (`{kind}`) "
        f"{ours or 'none'} did either."
    )


def write(page: Path, text: str) -> None:
    """Put `text` between the page's marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
