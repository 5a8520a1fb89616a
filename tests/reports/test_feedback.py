"""The page that a student gets back."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pygments.styles import get_style_by_name

import graders.reports
from graders.reports.colours import DARK, LIGHT
from graders.reports.feedback import LONGEST_ANSWER, LONGEST_COLOURED, feedback_page
from graders.verdict import Verdict
from tests.reports.samples import HALF, OVER_BATCH, PAGES, PERFECT, SWAPPED, UNGRADED

CSS = (Path(graders.reports.__file__).parent / "templates" / "feedback.css").read_text(encoding="utf-8")
VOID = {"meta", "br", "link", "img"}


class Outline(HTMLParser):
    """The elements of a page, and whether each is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        """Note the element."""
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """It closes the one that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep what a reader reads."""
        if self.open[-1:] != ["style"]:
            self.text += data
            self.words.append(data)

    def named(self, tag: str) -> list[dict]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(params=PAGES)
def outline(request) -> Outline:
    """Each sample page, parsed."""
    return Outline(PAGES[request.param]())


def test_every_element_is_closed(outline):
    """The page is well-formed, whatever text it holds."""
    assert outline.open == []


def test_nothing_runs_and_nothing_is_fetched(outline):
    """No script, no other file, no network: the page can be mailed and opened anywhere."""
    names = {name for name, _ in outline.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "a", "svg"}
    attributes = {key for _, pairs in outline.tags for key in pairs}
    assert not any(key.startswith("on") or key in ("src", "href", "style") for key in attributes)
    policy = next(meta["content"] for meta in outline.named("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none'")


def test_style_fetches_nothing():
    """No font and no picture comes from elsewhere."""
    assert not re.search(r"url\(|@import|@font-face|https?:", PAGES["half"]())


def test_screen_reader_finds_its_way(outline):
    """Language, landmarks, one main heading, table headers, and ids that exist once."""
    assert outline.named("html") == [{"lang": "en"}]
    assert [len(outline.named(tag)) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert [th["scope"] for th in outline.named("th")][:3] == ["col", "col", "col"]
    ids = [pairs["id"] for _, pairs in outline.tags if "id" in pairs]
    assert len(ids) == len(set(ids))
    assert all(pairs["aria-labelledby"] in ids for _, pairs in outline.tags if "aria-labelledby" in pairs)


def test_total_stands_at_the_top():
    """Marks read as people say them."""
    assert "18 of 18" in Outline(PAGES["perfect"]()).text


def test_manual_marks_and_lateness_enter_the_total():
    """5 from checks and 3 from a person, less 1 for lateness; what is still to come counts on neither side."""
    text = Outline(PAGES["half"]()).text
    assert "7 of 25" in text
    assert "8 earned, 1 taken off" in text
    assert "5 more points are marked by a person" in text


def test_marks_that_a_person_changed_replace_a_checks():
    """An instructor may give marks in the formgrader that a check did not; row and total say so."""
    text = " ".join(Outline(feedback_page(HALF, [], manual={"rows_sum_to_one": (2, 2)})).words)
    assert "7 of 20" in text
    assert "by a person" in text
    assert "(0 of 2)" not in text


def test_penalty_never_goes_below_zero():
    """Late and wrong is zero."""
    assert "0 of 20" in Outline(feedback_page(HALF, [], late_penalty=9)).text


def test_row_has_sign_word_marks_message_and_idea():
    """Everything that a student can use of a check is on the page; ideas are told in sentences, never by their ids."""
    text = " ".join(" ".join(Outline(PAGES["half"]()).words).split())
    assert "✗ not yet Each row of weights sums to 1 rows_sum_to_one the sum of each row is off" in text
    assert "got 2.27014" in text
    assert f"you may have {OVER_BATCH.sentence} or You use the scores as they are;" in text
    assert f"or {SWAPPED.sentence} look at" in text
    assert not re.search(r"normalises.over.the.batch|forgets.to.scale|swaps.queries.and.keys", text)
    assert "✗ timed out" in text
    assert "– not run" in text


def test_ungraded_hand_in_says_why():
    """Zero because nothing could be graded is told apart from zero for wrong answers."""
    text = Outline(PAGES["ungraded"]()).text
    assert "could not be graded" in text
    assert "merge conflict markers at line 88" in text


def test_answers_and_comments_stand_together():
    """The student sees their own code, and beside it what the instructor wrote; no comment is lost."""
    text = Outline(PAGES["half"]()).text
    assert "Q, K, V = np.split(X @ W_qkv, 3, axis=-1)" in text
    assert "Where does the library analogy break?" in text
    assert "See me on Friday." in text


def test_long_answer_is_cut_and_says_so():
    """A pasted data set does not bury the marks."""
    page = feedback_page(PERFECT, [("x", "a = 1\n" * LONGEST_ANSWER)])
    assert "Only the beginning is shown" in page
    assert len(page) < 40 * LONGEST_ANSWER


def test_long_answer_is_plain():
    """Colouring lines that are all but empty takes time as the square of their number, and the class waits for it."""
    page = feedback_page(PERFECT, [("short", "a = 1\n"), ("long", "a = 1\n" + "\n " * LONGEST_COLOURED)])
    assert page.count('<span class="mi">1</span>') == 1


def test_hostile_text_stays_text():
    """Markup, template syntax, control and direction characters in any field are shown or dropped, never obeyed."""
    page = PAGES["hostile"]()
    assert "<script" not in page
    assert "<img" not in page
    assert "{{ 7*7 }}" in page
    assert not set("\x00\x1b\u202e\ud800") & set(page)
    page.encode("utf-8")


def test_seed_is_not_on_the_page():
    """The seed repeats the hidden inputs; it is the instructor's."""
    page = feedback_page(Verdict("ada", "x", 0, 5, "process-only", (), (), seed=918273645), [])
    assert "918273645" not in page


def test_page_without_checks_is_a_page():
    """A verdict may hold nothing but findings."""
    page = feedback_page(Verdict("linus", "x", 0, 5, "process-only", (), UNGRADED.findings), [])
    assert "<table" not in page
    assert "0 of 5" in page


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance of `rrggbb`."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio, 1 to 21."""
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def theme(dark: bool) -> dict[str, str]:
    """The colours of one theme of the page."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.S)
    return dict(re.findall(r"--(\w+): #([0-9a-f]{6})", blocks[dark]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_stand_out_from_their_background(dark):
    """Every colour of text keeps 4.5:1 on the page and on panels."""
    colours = theme(dark)
    for name in ("ink", "soft", "passed", "failed", "waiting"):
        for background in ("page", "panel"):
            assert contrast(colours[name], colours[background]) >= 4.5, (name, background)


@pytest.mark.parametrize(("dark", "style"), [(False, LIGHT), (True, DARK)], ids=["light", "dark"])
def test_code_stands_out_from_its_background(dark, style):
    """Every colour of the highlighting that Python code gets keeps 4.5:1 too."""
    used = [(str(token), values["color"]) for token, values in get_style_by_name(style) if values["color"]]
    weak = [token for token, colour in used if contrast(colour, theme(dark)["panel"]) < 4.5]
    assert [token for token in weak if not token.startswith(("Token.Generic", "Token.Error"))] == []
