"""`qkv report`: what a class misunderstood, as a page, CSV and JSON."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from graders import history
from graders.authoring import UsageError, load_exercise
from graders.reports import class_figures as figures
from graders.reports.class_report import ClassReport, HandIn, gather, hand_ins_csv, page, report
from graders.reports.counter_example import counter_example
from graders.settings import HISTORY, VERDICT
from graders.verdict import Finding
from tests.reports.class_samples import EXERCISE, SLUG, course_in, made_up, not_graded, verdict

VOID = {"meta", "br", "link", "img", "rect", "line"}
COLUMNS, ROWS = "fused_softmax_over_queries", "causal_softmax_over_queries"
NO_SCALE, OVERFLOWS, MASK = "fused_forgets_scale", "fused_overflows", "causal_masks_after_softmax"


class Outline(HTMLParser):
    """The elements and words of a page; every element closes where it should."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Note the element."""
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """It closes the one that was opened last."""
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep what a reader reads."""
        if self.open[-1:] != ["style"]:
            self.words += data.split()

    @property
    def text(self) -> str:
        """The words with one space between them."""
        return " ".join(self.words)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class of 60."""
    return course_in(tmp_path_factory.mktemp("class"), made_up(60))


@pytest.fixture(scope="module")
def written(course) -> dict[str, str]:
    """What `qkv report` writes about it, by file name."""
    return {path.name: path.read_text(encoding="utf-8-sig") for path in report(course, SLUG)}


def of(*verdicts, earlier=()) -> ClassReport:
    """A report on these verdicts."""
    return ClassReport(EXERCISE, tuple(HandIn(v.student, v, tuple(earlier)) for v in verdicts))


def test_page_fetches_and_runs_nothing(written):
    """One file: no script, no other file, no network, no style that a policy would forbid."""
    outline = Outline(written["report.html"])
    assert not {name for name, _ in outline.tags} & {"script", "link", "img", "iframe", "object", "form"}
    assert not any(key.startswith("on") or key in ("src", "style") for _, pairs in outline.tags for key in pairs)
    assert all(pairs["href"].startswith("#") for tag, pairs in outline.tags if tag == "a")
    assert not re.search(r"url\(|@import|@font-face|https?:", written["report.html"])


def test_screen_reader_finds_its_way(written):
    """Landmarks, one main heading, ids that exist once, links that lead somewhere, header cells with a scope."""
    outline = Outline(written["report.html"])
    assert outline.open == []
    assert [sum(tag == name for tag, _ in outline.tags) for name in ("header", "nav", "main", "footer", "h1")] == [
        1
    ] * 5
    ids = [pairs["id"] for _, pairs in outline.tags if "id" in pairs]
    assert len(ids) == len(set(ids))
    named = [pairs["aria-labelledby"].split() for _, pairs in outline.tags if "aria-labelledby" in pairs]
    assert {id for each in named for id in each} <= set(ids)
    assert {pairs["href"][1:] for tag, pairs in outline.tags if tag == "a"} <= set(ids)
    assert all("scope" in pairs for tag, pairs in outline.tags if tag == "th")


def test_chart_is_told_by_a_table_too(written):
    """Every bar's number stands in the table, and together they are the graded class."""
    data = json.loads(written["report.json"])
    assert sum(bar["count"] for bar in data["marks"]) == data["graded"]
    text = Outline(written["report.html"]).text
    assert all(f"{bar['label']} {bar['count']}" in text for bar in data["marks"])


@pytest.mark.parametrize(("score", "label"), [(0, "0–2"), (2, "0–2"), (3, "3–5"), (29, "27–29"), (30, "30")])
def test_marks_fall_into_one_interval(score, label):
    """Full marks have a bar of their own; an interval's ends are both in it."""
    (one,) = [bar for bar in figures.distribution([verdict_with(score)]) if bar.count]
    assert one.label == label


def verdict_with(score: float):
    """A verdict with this total."""
    from dataclasses import replace

    return replace(verdict("ada"), score=score)


def test_marks_that_are_no_whole_numbers_get_honest_labels():
    """2.5 is in no interval '0–2'."""
    (one,) = [bar for bar in figures.distribution([verdict_with(2.5)]) if bar.count]
    assert one.label == "0 to under 3"


def test_same_sentence_in_two_functions_is_one_idea():
    """Who takes the softmax over the queries twice has one idea, seen in two checks."""
    (idea,) = figures.ideas(EXERCISE, [verdict("ada", [COLUMNS, ROWS]), verdict("ben")])
    assert set(idea.ids) == {COLUMNS, ROWS}
    assert idea.students == (0,)
    assert dict(idea.checks) == {"fused_values": 1, "causal_values": 1}
    assert idea.share(of=2) == 50


def test_what_could_not_be_graded_counts_in_no_share():
    """One of two graded students is half of the class, however many notebooks were broken."""
    found = of(verdict("ada", [NO_SCALE]), verdict("ben"), not_graded("jo", "x.ipynb"))
    assert "50 % of the class" in Outline(page(found)).text


def test_pairs_are_those_beyond_chance():
    """Two ideas of the same three students in twelve come together; one that everybody has is no pair with any."""
    both = [verdict(name, [NO_SCALE, MASK, OVERFLOWS]) for name in "abc"]
    rest = [verdict(name, [OVERFLOWS]) for name in "defghijkl"]
    ideas = figures.ideas(EXERCISE, both + rest)
    (pair,) = figures.pairs(ideas, 12)
    assert {pair.first.ids[0], pair.second.ids[0]} == {NO_SCALE, MASK}
    assert (pair.together, pair.expected) == (3, 0.75)


def test_point_biserial_is_pearsons_correlation():
    """The formula on the page, against NumPy's."""
    rng = np.random.default_rng(0)
    passed, rest = rng.random(40) < 0.6, rng.normal(size=40)
    assert figures.point_biserial(passed, rest) == pytest.approx(np.corrcoef(passed, rest)[0, 1])
    assert figures.point_biserial(np.ones(5, bool), rest[:5]) is None
    assert figures.point_biserial(passed[:5], np.ones(5)) is None


def test_check_that_better_students_fail_is_told():
    """The four with everything else right fail it, the four without pass it."""
    good = [verdict(f"good {i}", failed=["head_bias"]) for i in range(6)]
    weak = [verdict(f"weak {i}", failed=["cross_values", "cross_large_scores"]) for i in range(6)]
    found = {check.id: check for check in figures.discrimination(good + weak)}
    assert found["head_bias"].index == pytest.approx(-1)
    assert "did better elsewhere failed it more often" in found["head_bias"].remark
    assert found["linear_bias"].remark == "everyone passed it"


def test_nothing_is_said_of_checks_with_few_hand_ins():
    """Seven hand-ins, and any number of untouched ones, say nothing."""
    seven = [verdict(name, [NO_SCALE]) for name in "abcdefg"]
    assert figures.discrimination([*seven, not_graded("jo", "x.ipynb")]) == []
    assert "fewer than 8" in Outline(page(of(*seven))).text


def test_versions_compare_first_and_latest(tmp_path):
    """Two handed in again: one lost an idea, one kept it; who handed in once is not among them."""
    again = [
        [verdict("ada", [NO_SCALE]), verdict("ada")],
        [verdict("ben", [NO_SCALE]), verdict("ben", [NO_SCALE, MASK])],
    ]
    found = gather(course_in(tmp_path, [*again, [verdict("eve")]]), SLUG)
    assert (found.versions.students, found.versions.before, found.versions.after) == (2, 28, 28.5)
    sentences = {EXERCISE.misconceptions[id].sentence: id for id in (NO_SCALE, MASK)}
    assert {sentences[text]: counts for text, *counts in found.versions.ideas} == {NO_SCALE: [2, 1, 0], MASK: [0, 0, 1]}


def test_versions_under_other_points_are_not_compared():
    """A mean of 28 of 30 and 18 of 20 would say nothing."""
    from dataclasses import replace

    before = verdict("ada", [NO_SCALE])
    before = replace(before, checks=before.checks[:-1])
    found = of(verdict("ada"), earlier=[before])
    assert (found.versions.students, found.versions.left_out) == (0, 1)


def test_history_has_a_line_for_each_version_once(tmp_path):
    """The same hand-in graded again makes none; a line is short, and holds no message."""
    first, second = verdict("ada", [NO_SCALE]), verdict("ada", [MASK])
    course_in(tmp_path, [[first, first, second, first, second]])
    folder = tmp_path / "autograded" / "ada" / SLUG
    assert [v.fingerprint for v in history.earlier(folder)] == [first.fingerprint, second.fingerprint]
    assert "secret words" not in (folder / HISTORY).read_text()
    (folder / HISTORY).write_text("half a line {\n" + (folder / HISTORY).read_text())
    assert len(history.earlier(folder)) == 2


def test_anonymous_report_holds_no_name_and_no_file_name(course):
    """Neither the page nor the data has a student's id, a file's name, or a message that could hold one."""
    texts = [path.read_text(encoding="utf-8") for path in report(course, SLUG, anonymous=True)]
    report(course, SLUG)
    assert not any("student-name" in text or ".ipynb was graded" in text or "secret" in text for text in texts)
    # Numbers are drawn anew each time, so which of them need a person is chance; that they are numbers is not.
    assert re.search(r"\bstudent \d+\b", texts[0])
    assert "conflict" in texts[0]


def test_messages_stay_out_of_the_report(written):
    """What a check told one student, derived perhaps from their own numbers, is theirs."""
    assert not any("secret words" in text for text in written.values())


def test_hand_in_that_needs_a_person_stands_with_its_finding(course, written):
    """Name, what was found, marks."""
    needing = [name for name, _, _ in gather(course, SLUG).people()]
    text = Outline(written["report.html"]).text
    assert needing
    assert all(name in text for name in needing)
    assert "Not graded: student-name" in text


def test_hostile_names_are_text(tmp_path):
    """A student's id may be markup or a formula; it is neither on the page nor in the table."""
    odd = Finding("warning", "renamed", "<script>alert(1)</script> \u202e=1+1")
    found = of(verdict("=HYPERLINK(1)", [NO_SCALE], findings=(odd,)), verdict("<b>bo</b>"))
    text = page(found)
    assert "<script>" not in text
    assert "\u202e" not in text
    rows = list(csv.reader(hand_ins_csv(found).lstrip("\ufeff").splitlines()))
    assert rows[1][0] == "'=HYPERLINK(1)"


def test_csv_has_a_row_a_student_and_json_the_same_students(course, written):
    """Three forms of one report agree."""
    rows = list(csv.DictReader(written["hand_ins.csv"].splitlines()))
    data = json.loads(written["report.json"])
    assert len(rows) == data["hand_ins"] == 60
    ideas = list(csv.DictReader(written["ideas.csv"].splitlines()))
    assert {row["sentence"] for row in ideas} == {idea["sentence"] for idea in data["ideas"]}


def test_broken_verdict_is_told_and_stops_nothing(tmp_path):
    """A file cut short is a line on the page."""
    course = course_in(tmp_path, [[verdict("ada")], [verdict("ben")]])
    (course.folder("autograded") / "ben" / SLUG / VERDICT).write_text("{")
    assert "ben Not read" in Outline(page(gather(course, SLUG))).text


def test_class_without_verdicts_is_one_line(tmp_path):
    """What was not found, and what to do."""
    course = course_in(tmp_path, [])
    with pytest.raises(UsageError, match="qkv grade"):
        gather(course, SLUG)


def test_class_of_broken_notebooks_has_a_page():
    """Nothing could be graded, and the page says so."""
    text = Outline(page(of(not_graded("jo", "x.ipynb")))).text
    assert "No hand-in could be graded" in text
    assert "Not graded: x.ipynb" in text


def test_reteach_shows_where_right_and_wrong_part():
    """The top idea has an example whose results differ, and the steps to the right one."""
    (lesson,) = of(verdict("ada", [NO_SCALE])).lessons
    assert lesson.example.function == "fused_self_attention"
    assert [each.name for each in lesson.example.inputs] == ["X", "W_qkv", "scale"]
    assert [each.name for each in lesson.example.steps] == ["Q", "K", "V", "scores", "weights"]
    (result,) = lesson.example.results
    assert result.right != result.wrong


def test_example_of_a_class_comes_from_a_function_with_the_same_idea():
    """SingleHead takes more to be shown; where the idea is the same elsewhere that is simpler, and else it must do."""
    (lesson,) = of(verdict("ada", ["head_forgets_scale"])).lessons
    assert lesson.example.function != "SingleHead"
    (lesson,) = of(verdict("ada", ["head_leaves_out_bias"])).lessons
    assert [value.name for value in lesson.example.inputs] == ["x", "weight", "bias"]


EXAMPLES = [
    ("attention_shapes", "gives_the_output_the_key_width", {"output": ("(2, 3, 7)", "(2, 3, 6)")}),
    ("derive_by_hand", "exchanges_queries_and_keys", None),
    ("derive_by_hand", "softmax_of_raw_scores", None),
    ("break_sqrt_d", "multiplies_by_the_root", None),
    (SLUG, "cross_masks_unasked", None),
    (SLUG, "fused_shifts_by_one_maximum", None),
    (SLUG, "head_softmax_over_queries", None),
    (SLUG, "head_leaves_out_bias", None),
]


@pytest.mark.parametrize(("slug", "id", "expected"), EXAMPLES, ids=[f"{slug}-{id}" for slug, id, _ in EXAMPLES])
def test_example_is_found_and_small(slug, id, expected):
    """Matrices of a few whole numbers, the same each time, on which the two results are not the same text."""
    exercise = load_exercise(slug)
    example = counter_example(exercise, exercise.misconceptions[id])
    assert example == counter_example(exercise, exercise.misconceptions[id])
    assert any(each.right != each.wrong for each in example.results)
    assert all(each.right.count("\n") <= 3 and "." not in each.right for each in example.inputs if each.name != "scale")
    if expected:
        assert {each.name: (each.right, each.wrong) for each in example.results} == expected


@pytest.mark.parametrize(
    ("slug", "id"),
    [
        ("previous_token_head", "looks_at_the_next"),
        (SLUG, "torch_cuts_the_graph"),
        (SLUG, "head_cuts_the_graph"),
        (SLUG, "linear_keeps_random_bias"),
    ],
)
def test_no_example_where_numbers_prove_nothing(slug, id):
    """Many weights make a right head, a gradient shows in no output, and a random bias in none twice."""
    exercise = load_exercise(slug)
    assert counter_example(exercise, exercise.misconceptions[id]) is None


def test_command_writes_four_files_and_names_them(tmp_path):
    """From the terminal, in a course folder; elsewhere and before grading it is one line."""
    course = course_in(tmp_path / "course", [[verdict("ada", [NO_SCALE])]])
    qkv = Path(sys.executable).parent / "qkv"
    done = subprocess.run([qkv, "report", SLUG], cwd=course.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"reports/{SLUG}/report.html written"
    names = {path.name for path in (course.root / "reports" / SLUG).iterdir()}
    assert names == {"report.html", "hand_ins.csv", "ideas.csv", "report.json"}
    none = subprocess.run([qkv, "report", "break_sqrt_d"], cwd=course.root, capture_output=True, text=True, check=False)
    assert none.returncode == 2
    assert "run qkv grade break_sqrt_d first" in none.stderr


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_phone_and_reteach_a_sheet(course, written, scheme):
    """No sideways scrolling at 360 px, and the part to teach from is no longer than an A4 page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
        tab.goto((course.root / "reports" / SLUG / "report.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") == 360
        tab.set_viewport_size({"width": 718, "height": 1047})  # A4 at 96 dots per inch, less Chromium's margins
        tab.emulate_media(media="print")
        assert tab.evaluate("document.querySelector('.reteach').scrollHeight") < 1047
        browser.close()
