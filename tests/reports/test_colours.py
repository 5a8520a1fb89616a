"""Code on a page has the colours that Pygments' own lexer would give it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pygments.lexers import PythonLexer

from graders.reports.colours import QuickLexer

PROJECT = Path(__file__).parents[2]
OWN = sorted(path for name in ("course", "graders", "tests") for path in (PROJECT / name).rglob("*.py"))

TRICKY = [
    "x = rb'a' + Rb\"b\" + f'{y!r:>{w}}' + u'ü' + b'c'",
    "match x:\n    case 1 | _:\n        match = case = type = _\n    case _: pass",
    'def f():\n    """Doc."""\n    "no doc"\n\n  \n    """Doc too."""',
    "a[1:2, ::3], {b: (y := 1)}, .5, 1., 1.e5, 0x1F, 1_000j, x.5, x .5, x. y",
    "A @ B; A@B\n@decorator\ndef g(self, cls, *a, **k) -> None: ...",
    "from a.b import c as d, e\nimport f.g\nraise X from None\nlazy import h",
    "print.len(len.print)\nis_not = notis = inx = orand = None is not None and not True or x in y",
    "na\u0308ive = x\u0301 + naïve = größe + café_1 + __init__ + __name__ + _ + __x + x__",
    "# a comment é\n\t \tindented = 1 \\\n  + 2\n\\\n!wrong ? $ `x`",
    "lambda: (yield), (yield from x), await y, async_, asyncio\nasync for z in q: pass",
    'x=\'unclosed\ny = """never closed',
    "#!/usr/bin/env python\n  \n",
    "",
]


def tokens(lexer: type[PythonLexer], text: str) -> list[tuple[object, str]]:
    return list(lexer(stripnl=False).get_tokens(text))


@pytest.mark.parametrize("text", TRICKY)
def test_every_token_is_pygments_own(text):
    """Prefixes, soft keywords, docstrings, numbers, words with more than one meaning, and what is no Python at all."""
    assert tokens(QuickLexer, text) == tokens(PythonLexer, text)


def test_this_project_has_the_same_colours():
    """All code of the project, a few thousand lines of everything that Python has."""
    assert len(OWN) > 100
    different = [path for path in OWN if tokens(QuickLexer, path.read_text()) != tokens(PythonLexer, path.read_text())]
    assert different == []
