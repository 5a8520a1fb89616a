"""Python code in colours: Pygments' own lexer, told first what most of a program is.

For every word and blank Pygments tries some forty patterns in turn. Four that it would come to late are tried before;
the tokens are the same, which a test compares on all code of this project.
"""

from __future__ import annotations

import builtins
import keyword
from functools import cache
from typing import Any, ClassVar

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import words
from pygments.lexers import PythonLexer
from pygments.regexopt import regex_opt
from pygments.token import Name, Operator, Punctuation, Text

_RULES = [rule for rules in PythonLexer.tokens.values() for rule in rules if isinstance(rule, tuple)]
_LISTED = {word for pattern, *_ in _RULES if isinstance(pattern, words) for word in pattern.words}
_SPECIAL = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", "lazy", *_LISTED}
"""Words that are, or may be, more than a name; those with a space in them begin with one of the others."""

_EARLY: list[Any] = [
    (r"(?<=\S)[^\S\n]+", Text),  # not at a line's start, where indentation may belong to what follows
    (rf"(?!__|{regex_opt(sorted(_SPECIAL))}\b)[A-Za-z_][A-Za-z0-9_]*(?![\w'\"]|[^\x00-\x7f])", Name),
    (r"[]{}(),;[]|:(?!=)", Punctuation),
    (r"!=|==|<<|>>|:=|[-~+/*%=<>&^|]|\.(?!\d)", Operator),
]


class QuickLexer(PythonLexer):
    """PythonLexer in a third of the time."""

    tokens: ClassVar = {"root": [*_EARLY, *PythonLexer.tokens["root"]]}  # the other states are inherited


LIGHT, DARK = "xcode", "lightbulb"
"""Pygments styles whose every colour keeps 4.5:1 against the page's code background; a test measures it."""

PYTHON, HTML = QuickLexer(stripnl=False), HtmlFormatter(nowrap=True)
"""Made once: a formatter works out its style sheet when it is made, which takes longer than a short cell."""


def coloured(text: str) -> Markup:
    """`text` as HTML, with a class for each kind of token."""
    return Markup(highlight(text, PYTHON, HTML))


@cache
def style_sheet() -> str:
    """Colours of code: light also in print; each theme in its own query, so that none shines through the other."""
    light, dark = (HtmlFormatter(style=style).get_token_style_defs(".code") for style in (LIGHT, DARK))
    return (
        "@media print, (prefers-color-scheme: light) {\n" + "\n".join(light) + "\n}\n"
        "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(dark) + "\n}"
    )
