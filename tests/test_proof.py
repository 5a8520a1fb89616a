"""`make prove` measures what it says and tells what is missed; the committed figures are of the sources of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from graders.authoring import load_exercise, slugs
from proof import digest, faults, mutants, parts, results, rights
from proof.judging import failures, passes, right_but, same_function

EXERCISE = load_exercise("attention_shapes")
SMALL = "derive_by_hand"
"""The exercise that is proved again here."""


@pytest.mark.slow
def test_committed_figures_are_measured_again():
    """One exercise, proved anew, has the figures and the lines that are committed."""
    tallies = {part: [] for part in parts.PARTS}
    for job in parts.jobs(SMALL):
        tallies[job[1]].append(parts.done(job))
    again = results.result(SMALL, {part: parts.merged(done) for part, done in tallies.items()})
    committed = results.load()[SMALL]
    assert {**again, "digest": committed["digest"]} == committed  # the digest is for `make fresh`


def test_page_shows_the_results_and_their_digests():
    """Every exercise is on the page, and the page is what the committed data give."""
    page = results.PAGE.read_text(encoding="utf-8")
    assert page == results.page(results.load())
    for slug in results.load():
        assert f"| `{slug}` |" in page
        assert results.load()[slug]["digest"] in page


def test_aims_are_reached():
    """No fault, pair, or mutant that is not equivalent passes; names are exact; right answers keep their marks."""
    assert results.missed(results.load()) == []


@pytest.mark.parametrize(
    "path",
    [
        "graders/exercises/fused_self_attention.py",
        "graders/exercises/_attention_faults.py",
        "graders/diagnosis.py",
        "proof/equivalents.toml",
        "tests/exercises/cases/single_head_right.py",
    ],
)
def test_digest_covers_what_a_proof_rests_on(path):
    """The exercise with what it imports, the diagnosis, the equivalents and the right answers."""
    assert digest.ROOT / path in digest.sources("fused_self_attention")


def test_changed_exercise_is_stale_until_it_is_proved_again(monkeypatch):
    """The line says which exercise, and what to run."""
    known = results.load()
    monkeypatch.setattr(results, "digest", lambda slug: "other" if slug == SMALL else known[slug]["digest"])
    assert results.stale(known) == [
        f"docs/proof.md: {SMALL}, or what its proof rests on, has changed since it was proved; run make prove"
    ]


def test_new_exercise_is_not_stale_before_it_is_proved(monkeypatch):
    """`qkv new` gives one that passes `make check`; it has no figures to be out of date."""
    known = results.load()
    monkeypatch.setattr(results, "slugs", lambda: [*known, "rotary_positions"])
    assert results.stale(known) == []


def test_digest_is_of_text_alone(tmp_path, monkeypatch):
    """A character changes it; how lines end does not."""
    source = tmp_path / "proof" / "x.py"
    source.parent.mkdir()
    monkeypatch.setattr(digest, "ROOT", tmp_path)
    monkeypatch.setattr(digest, "sources", lambda slug: {Path(source)})
    source.write_bytes(b"a = 1\nb = 2\n")
    first = digest.digest("x")
    source.write_bytes(b"a = 1\r\nb = 2\r\n")
    assert digest.digest("x") == first
    source.write_bytes(b"a = 1\nb = 3\n")
    assert digest.digest("x") != first


# --- mutants ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mutants_are_the_same_every_time_and_each_is_another():
    """Keys tell them apart, and the unchanged solution is none of them."""
    for slug in slugs():
        exercise = load_exercise(slug)
        for answer in exercise.answers:
            made = list(mutants.mutants(exercise, answer))
            assert made == list(mutants.mutants(exercise, answer))
            assert len({mutant.key for mutant in made}) == len(made)
            assert mutants.source_of(exercise, answer) not in {mutant.source for mutant in made}


def test_mutants_change_operators_numbers_and_names():
    """One example of each in the fused head."""
    exercise = load_exercise("fused_self_attention")
    keys = [mutant.key for mutant in mutants.mutants(exercise, "fused_self_attention")]
    for change in (
        "* scale → scores = Q @ np.swapaxes(K, -1, -2) / scale",
        "3, axis=-1) → Q, K, V = np.split(X @ W_qkv, 4, axis=-1)",
        "return weights @ V → return weights @ K",
    ):
        assert any(change in key for key in keys), change


def test_solved_notebook_that_is_not_mutated_passes():
    """What a mutant fails, it fails for what was changed in it."""
    for slug in slugs():
        exercise = load_exercise(slug)
        names = mutants.run(exercise)
        assert all(passes(exercise, names, about=answer) for answer in exercise.answers), slug


def measured(slug, **changed):
    """The committed data of an exercise as its parts measured them, but for what is `changed`."""
    data = results.load()[slug]
    found = {part: dict(data[part]) for part in parts.PARTS}
    found["mutants"] = {key: value for key, value in found["mutants"].items() if key != "equivalent"}
    found["mutants"] |= {"survived": [], "unasked": []}
    found["company"] |= {"unasked": []}
    for part, values in changed.items():
        found[part] |= values
    return found


def reviewed(monkeypatch, equivalents=(), names=()):
    """Let these be the lists of reviewed mutants and names."""
    lists = {results.EQUIVALENTS: equivalents, results.NAMES: names}
    monkeypatch.setattr(results, "reviewed", lambda path, slug: dict.fromkeys(lists[path], "It is the same."))


def test_survivors_are_equivalents_faults_of_the_checks_or_stale(monkeypatch):
    """A listed survivor is equivalent, one that is not listed is missed, and so is one that is listed and killed."""
    reviewed(monkeypatch, equivalents=("a", "gone"))
    found = results.result("attention_shapes", measured("attention_shapes", mutants={"survived": ["a", "b"]}))
    assert found["mutants"]["equivalent"] == [["a", "It is the same."]]
    assert results.missed({"attention_shapes": found}) == [
        "attention_shapes: a mutant survives and is not listed in proof/equivalents.toml: b",
        "attention_shapes: proof/equivalents.toml or names.toml lists what is no longer found: gone",
    ]


def test_name_that_nobody_put_in_is_wrong_unless_it_was_reviewed(monkeypatch):
    """An answer counts once, however many wrong names it gets; an answer whose names are all true does not count."""
    reviewed(monkeypatch, names=("true",))
    unasked = [["true"], ["true", "wrong"], ["bad", "worse"]]
    found = results.result("attention_shapes", measured("attention_shapes", company={"unasked": unasked}))
    assert found["names"]["wrong"] == [["wrong"], ["bad", "worse"]]
    told = results.missed({"attention_shapes": found})
    assert told == ["a wrong name is given to 2 of 200 random wrong answers; at most 1 in 200 is the aim"]


# --- what is measured -------------------------------------------------------------------------------------------------


def test_right_answer_that_loses_marks_is_counted(monkeypatch):
    """With its name and the checks that it fails."""
    wrong = EXERCISE.misconceptions["sums_over_the_queries"].answer
    names = right_but(EXERCISE, {"attention_shapes": wrong})
    monkeypatch.setattr(rights, "right_answers", lambda exercise: [("attention_shapes", "unlucky", names)])
    tally = parts.right(EXERCISE, "attention_shapes")
    assert tally == {
        "of": 1,
        "accepted": 0,
        "off": ["unlucky: output_is_as_wide_as_a_value, cross_attention_keeps_both_lengths"],
    }


def test_fault_that_no_check_notices_is_counted(monkeypatch):
    """A catalogued answer that is right passes, and is neither killed nor named."""
    passing = faults.Wrong("attention_shapes", frozenset({"harmless"}), right_but(EXERCISE, {}))
    monkeypatch.setattr(faults, "singles", lambda exercise, about: [passing])
    assert parts.singles(EXERCISE, "attention_shapes") == {
        "of": 1,
        "killed": 0,
        "exact": 0,
        "off": ["harmless → passes"],
    }


def test_name_is_asked_for_where_the_answer_is_that_idea(monkeypatch):
    """The same answer under another label is named as what it is; a narrower idea would have to be reviewed."""
    idea = EXERCISE.misconceptions["exchanges_the_widths"]
    other = faults.Wrong(
        "attention_shapes", frozenset({"else"}), right_but(EXERCISE, {"attention_shapes": idea.answer})
    )
    monkeypatch.setattr(faults, "company", lambda exercise, about, count: [other])
    assert parts.company(EXERCISE, "attention_shapes") == {"of": 1, "named": 1, "unasked": []}
    monkeypatch.setattr(parts, "same_function", lambda *_: False)
    [[first, second]] = parts.company(EXERCISE, "attention_shapes")["unasked"]
    assert first == "else → parameters_serve_every_length: exchanges_the_widths"
    assert second == "else → projections_keep_the_tokens: exchanges_the_widths"


def test_same_function_is_the_same_in_every_check():
    """An idea that agrees in one check and differs in another is another function."""
    answer = EXERCISE.misconceptions["gives_values_the_key_width"].answer
    names = right_but(EXERCISE, {"attention_shapes": answer})
    first = next(failures(EXERCISE, names, about="attention_shapes"))
    assert same_function(EXERCISE, first.explanations[0], names)
    narrower = EXERCISE.misconceptions["gives_the_output_the_key_width"]
    assert not same_function(EXERCISE, narrower, names)


def test_random_company_is_the_same_every_time():
    """Seeds are fixed, so that two runs measure the same answers."""
    labels = [[wrong.label for wrong in faults.company(EXERCISE, "attention_shapes", 20)] for _ in range(2)]
    assert labels[0] == labels[1]
    assert len(set(labels[0])) > 10
