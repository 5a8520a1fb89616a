"""The results of proofs: kept as data in `proof/results.json`, judged against the aims, shown in `docs/proof.md`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graders.authoring import slugs
from proof.digest import ROOT, digest

DATA = ROOT / "proof" / "results.json"
PAGE = ROOT / "docs" / "proof.md"
GUIDE = ROOT / "docs" / "instructor.md"
EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
NAMES = Path(__file__).with_name("names.toml")

COLUMNS = (
    "faults killed",
    "faults named exactly",
    "pairs killed",
    "pairs named exactly",
    "pairs alone",
    "mutants killed",
    "equivalent",
    "survive",
    "right answers kept",
    "random answers named",
    "wrongly",
)

Data = dict[str, Any]
Count = tuple[int, ...]


def load() -> dict[str, Data]:
    """The results by slug; empty where nothing was proved yet."""
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}


def save(results: Mapping[str, Data]) -> None:
    """Write the data and the page."""
    known = {slug: results[slug] for slug in slugs() if slug in results}
    DATA.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")
    GUIDE.write_text(_guide(known), encoding="utf-8")


def result(slug: str, parts: Mapping[str, Data]) -> Data:
    """What was measured, with survivors and names that nobody put in sorted by what a review said of them."""
    mutants, company = dict(parts["mutants"]), dict(parts["company"])
    survived, equivalent = mutants.pop("survived"), reviewed(EQUIVALENTS, slug)
    unasked, true = [*mutants.pop("unasked"), *company.pop("unasked")], reviewed(NAMES, slug)
    lines = [line for answer in unasked for line in answer]
    mutants["equivalent"] = [[key, equivalent[key]] for key in survived if key in equivalent]
    mutants["survived"] = [key for key in survived if key not in equivalent]
    names = {
        "true": [[line, true[line]] for line in lines if line in true],
        "wrong": [wrong for answer in unasked if (wrong := [line for line in answer if line not in true])],
    }
    stale = [key for key in equivalent if key not in survived] + [line for line in true if line not in lines]
    return {"digest": digest(slug), **parts, "mutants": mutants, "company": company, "names": names, "stale": stale}


def reviewed(path: Path, slug: str) -> dict[str, str]:
    """The mutants or names of an exercise that were reviewed and found to be right: each with the reason."""
    groups = tomllib.loads(path.read_text(encoding="utf-8")).get(slug, [])
    return {answer: group["reason"] for group in groups for answer in group["answers"]}


# --- aims -------------------------------------------------------------------------------------------------------------


def missed(results: Mapping[str, Data]) -> list[str]:
    """One line for each aim that is not reached."""
    found = [line for slug, data in results.items() for line in _missed(slug, data)]
    tried, wrong = (sum(_names(data)[count] for data in results.values()) for count in (0, 2))
    if wrong * 200 > tried:
        found.append(f"a wrong name is given to {wrong} of {tried} random wrong answers; at most 1 in 200 is the aim")
    return found


def _missed(slug: str, data: Data) -> Iterator[str]:
    singles, pairs, mutants, right = (data[part] for part in ("singles", "pairs", "mutants", "right"))
    if singles["killed"] < singles["of"] or pairs["killed"] < pairs["of"]:
        yield f"{slug}: a catalogued fault, or a pair of them, passes every check"
    if singles["exact"] < 0.95 * singles["of"]:
        yield f"{slug}: {singles['exact']} of {singles['of']} single faults are named exactly; 95 % is the aim"
    if pairs["exact"] < 0.9 * (pairs["tried"] - pairs["alone"]):
        yield f"{slug}: {pairs['exact']} of {pairs['tried'] - pairs['alone']} pairs are named exactly; 90 % is the aim"
    if right["accepted"] < right["of"]:
        yield f"{slug}: a right answer loses marks: {'; '.join(right['off'])}"
    for key in mutants["survived"]:
        yield f"{slug}: a mutant survives and is not listed in proof/equivalents.toml: {key}"
    for key in data["stale"]:
        yield f"{slug}: proof/equivalents.toml or names.toml lists what is no longer found: {key}"


def stale(results: Mapping[str, Data]) -> list[str]:
    """One line for each result that rests on other sources than today's, or is shown otherwise.

    An exercise that was never proved has no result; the page says nothing of it, and a new one may be unproved.
    """
    found = [
        f"docs/proof.md: {slug}, or what its proof rests on, has changed since it was proved; run make prove"
        for slug in slugs()
        if slug in results and results[slug]["digest"] != digest(slug)
    ]
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(results):
        found.append("docs/proof.md does not show proof/results.json; run make prove")
    if GUIDE.read_text(encoding="utf-8") != _guide(results):
        found.append("docs/instructor.md states other figures than proof/results.json; run make prove")
    return found


def _names(data: Data) -> tuple[int, int, int]:
    """Wrong answers made at random, those that got a name, and those that got a wrong one."""
    mutants, company = data["mutants"], data["company"]
    killed = mutants["killed"] - mutants["timed_out"]
    return company["of"] + killed, company["named"] + mutants["named"], len(data["names"]["wrong"])


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# What the checks catch and what the diagnosis names

Written by `make prove`, which runs every answer below through the hidden checks in its own process, on fixed seeds.
Edit nothing here.

- **Faults and pairs**: every catalogued misconception, and every two about one function that can be combined.
  *Killed*: some check fails. *Named exactly*: a fault by the first check that fails, a pair by the checks that fail
  together, with nothing else named first. Of the many pairs of one function, names are looked at in a fixed sample of
  250. Pairs of which all that any check sees is what one idea does alone are counted as *alone*, and not among
  the others: nobody could tell.
- **Mutants**: the solution in each answer cell with one operator, number, condition or name changed. *Equivalent*
  ones are right answers too, and are listed with the reason.
- **Right answers**: those of `tests/exercises/cases`, of every make that we could think of. Each must keep every mark.
- **Random answers**: compositions of one to three faults, most of them disturbed besides, and all mutants that are
  killed. A name given at one of the first two checks that fail is *wrong* if nobody put it in, unless the answer does
  in every check what that idea does, also on other hidden inputs, or it was reviewed and `proof/names.toml` says why it
  is true all the same (shown below as *named, and true*).
"""


def page(results: Mapping[str, Data]) -> str:
    """The page as Markdown."""
    return "\n".join([INTRODUCTION, *_table(results), *(line for slug in results for line in _section(slug, results))])


def lines(results: Mapping[str, Data]) -> Iterator[str]:
    """The same figures for a terminal."""
    for slug, data in results.items():
        yield slug
        for name, count in zip(COLUMNS, _row(data), strict=True):
            yield f"    {name:24}{_cell(count)}"


def _guide(results: Mapping[str, Data]) -> str:
    """The instructors' page with the figures of today, in the one line that states them."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.sub(r"^Proved: .*$", lambda _: summary(results), text, flags=re.MULTILINE)


def summary(results: Mapping[str, Data]) -> str:
    """The key figures in a line."""
    counts = zip(*(_row(data) for data in results.values()), strict=True)
    total = dict(zip(COLUMNS, map(_cell, map(_sum, counts)), strict=True))
    return (
        f"Proved: {total['faults killed']} catalogued faults and {total['pairs killed']} pairs of them lose marks, and"
        f" {total['mutants killed']} mutants of the solutions; {total['faults named exactly']} faults and"
        f" {total['pairs named exactly']} pairs are named exactly; {total['right answers kept']} right answers of every"
        f" make keep every mark; of {total['random answers named'].split(' of ')[-1]} random wrong answers,"
        f" {total['wrongly']} get a wrong name."
    )


def _table(results: Mapping[str, Data]) -> Iterator[str]:
    yield f"| exercise | {' | '.join(COLUMNS)} |"
    yield "|---" * (1 + len(COLUMNS)) + "|"
    rows = {f"`{slug}`": _row(data) for slug, data in results.items()}
    for name, row in rows.items():
        yield f"| {name} | {' | '.join(map(_cell, row))} |"
    if len(rows) > 1:
        yield f"| **all** | {' | '.join(_cell(_sum(column)) for column in zip(*rows.values(), strict=True))} |"
    yield ""


def _row(data: Data) -> list[Count]:
    singles, pairs, mutants, right = (data[part] for part in ("singles", "pairs", "mutants", "right"))
    tried, named, wrong = _names(data)
    return [
        (singles["killed"], singles["of"]),
        (singles["exact"], singles["of"]),
        (pairs["killed"], pairs["of"]),
        (pairs["exact"], pairs["tried"] - pairs["alone"]),
        (pairs["alone"],),
        (mutants["killed"], mutants["of"] - len(mutants["equivalent"])),
        (len(mutants["equivalent"]),),
        (len(mutants["survived"]),),
        (right["accepted"], right["of"]),
        (named, tried),
        (wrong,),
    ]


def _sum(column: tuple[Count, ...]) -> Count:
    return tuple(sum(counts) for counts in zip(*column, strict=True))


def _cell(count: Count) -> str:
    return " of ".join(f"{number:,}" for number in count)


def _section(slug: str, results: Mapping[str, Data]) -> Iterator[str]:
    data = results[slug]
    yield f"## {slug}\n"
    yield f"Proved from sources with the digest `{data['digest']}`.\n"
    yield from _list("Faults that are not named exactly", data["singles"]["off"])
    yield from _list("Pairs that are not named exactly", data["pairs"]["off"])
    yield from _list("Mutants that survive", data["mutants"]["survived"])
    yield from _list("Right answers that lose marks", data["right"]["off"])
    yield from _list("Wrong names", [line for answer in data["names"]["wrong"] for line in answer])
    yield from _by_reason("Equivalent", data["mutants"]["equivalent"])
    yield from _by_reason("Named, and true", data["names"]["true"])


def _by_reason(title: str, answers: list[list[str]]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for answer, reason in answers:
        reasons.setdefault(reason, []).append(answer)
    for reason, lines in reasons.items():
        yield from _list(f"{title}: {reason[0].lower()}{reason[1:].rstrip('.')}", lines)


def _list(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({len(lines)}):\n"
        yield from (f"- `` {line} ``" for line in lines)
        yield ""
