"""`qkv learn`: a wrong answer becomes an entry that names the next one like it, or nothing is left behind."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline.conftest import ROOT, one_line, run

from graders import grading, learned
from graders.authoring import ExerciseError, UsageError, load_exercise
from graders.diagnosis import explain, replay
from graders.grading import Job, grade
from graders.learn import examine, learn
from graders.learned import Learned, behind, file_of
from graders.sandbox.box import Limits, Sandbox

SLUG = "attention_shapes"
CHECK = "scores_and_weights_are_pairs"
SENTENCE = "You paired keys with keys: a score belongs to a query and a key."
RIGHT = """
def attention_shapes(B, T_q, T_k, d, d_k, d_v):
    table = {"X_q": (B, T_q, d), "X_kv": (B, T_k, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v),
             "Q": (B, T_q, d_k), "K": (B, T_k, d_k), "V": (B, T_k, d_v),
             "scores": (B, T_q, T_k), "weights": (B, T_q, T_k), "output": (B, T_q, d_v)}
"""
WRONG = f"{RIGHT}    return table | {{'scores': (B, T_k, 2 * T_k), 'weights': (B, T_k, 2 * T_k)}}\n"
SAME_IN_OTHER_WORDS = WRONG.replace("table | ", "table\\\n        | ").replace("2 * T_k", "T_k + T_k")


@pytest.fixture(scope="module")
def sandbox():
    """Walls for all that runs here."""
    with Sandbox(("numpy",), Limits(call=1.0)) as made:
        yield made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty place for what is learned."""
    path = tmp_path / "graders" / "exercises" / "learned"
    monkeypatch.setattr(learned, "FOLDER", path)
    return path


def learnt(sandbox, source, id="pairs_keys_with_keys", sentence=SENTENCE, hint="Whose row is it?", slug=SLUG):
    """The file that `qkv learn` writes for `source`."""
    exercise = load_exercise(slug)
    with behind(sandbox):
        return learn(exercise, source, examine(exercise, source), id, sentence, hint)


def verdict_on(source, sandbox):
    """What grading says of an answer."""
    return grade(Job(load_exercise(SLUG), "ben", (source,)), sandbox)[0]


def test_next_answer_like_it_is_named(folder, sandbox):
    """Before, nothing explains it; afterwards sentence and hint stand in the message, and the marks are the same."""
    before = verdict_on(SAME_IN_OTHER_WORDS, sandbox)
    learnt(sandbox, WRONG)
    after = verdict_on(SAME_IN_OTHER_WORDS, sandbox)

    assert before.check(CHECK).misconceptions == ()
    assert after.check(CHECK).misconceptions == ("pairs_keys_with_keys",)
    assert SENTENCE in after.check(CHECK).message
    assert "Whose row is it?" in after.check(CHECK).message
    assert [check.score for check in after.checks] == [check.score for check in before.checks]


def test_file_says_what_it_is_and_keeps_the_code(folder, sandbox):
    """What is read back is what was written, quotes, backslashes and accents included."""
    sentence = 'You "paired" keys \\ with clés.'
    path = learnt(sandbox, WRONG, sentence=sentence, hint="")

    assert path == file_of(SLUG, "pairs_keys_with_keys") == folder / SLUG / "pairs_keys_with_keys.py"
    found = learned.read(path)
    assert (found.replaces, found.first_fails, found.sentence, found.hint) == (SLUG, CHECK, sentence, "")
    assert found.source.strip() == WRONG.strip()


def test_every_other_idea_keeps_its_name(folder, sandbox):
    """An entry that was learned comes last, and explains nothing that had a name."""
    learnt(sandbox, WRONG)
    exercise = load_exercise(SLUG)
    assert list(exercise.misconceptions)[-1] == "pairs_keys_with_keys"
    with behind(sandbox):
        for idea in exercise.misconceptions.values():
            check = exercise.checks[idea.first_fails]
            named = explain(exercise, check, 0, replay(exercise, check, 0, idea))
            assert named[0].id == idea.id
            assert "pairs_keys_with_keys" not in [other.id for other in named[1:]]


def test_learned_code_never_runs_in_the_grader(folder, sandbox):
    """The answer may be anybody's: it is read here, and runs behind the walls."""
    source = f"import builtins\nbuiltins.learned_code_ran = True\n{WRONG}"
    learnt(sandbox, source)
    assert verdict_on(SAME_IN_OTHER_WORDS, sandbox).check(CHECK).misconceptions == ("pairs_keys_with_keys",)
    assert not hasattr(builtins, "learned_code_ran")


def test_nothing_learned_runs_without_walls(folder, sandbox):
    """Who trusts a notebook of their own has not said that they trust an answer that was learned."""
    learnt(sandbox, WRONG)
    with Sandbox(("numpy",), kind="none") as no_walls:
        verdict = verdict_on(SAME_IN_OTHER_WORDS, no_walls)
    assert verdict.check(CHECK).misconceptions == ()
    assert verdict.score == verdict_on(SAME_IN_OTHER_WORDS, sandbox).score


def test_learned_answer_that_never_ends_holds_up_nobody(folder, sandbox):
    """It is stopped once and not asked again; others are named and marked as before."""
    path = file_of(SLUG, "loops")
    path.parent.mkdir(parents=True)
    loop = "def attention_shapes(*sizes):\n    while True:\n        pass\n"
    path.write_text(Learned("loops", SLUG, CHECK, "You loop.", "", loop).text(), encoding="utf-8")
    wrong = f"{RIGHT}    return table | {{'output': (B, T_q, d_k)}}\n"

    verdict = verdict_on(wrong, sandbox)

    assert verdict.check("output_is_as_wide_as_a_value").misconceptions[0] == "gives_the_output_the_key_width"
    assert verdict.score == 16.0
    assert verdict.seconds < 4


def test_learned_answers_have_their_time_together(folder, sandbox, monkeypatch):
    """One that is slow on some day is not asked again and again while a class waits; only its name is missed."""
    learnt(sandbox, WRONG)
    monkeypatch.setattr(grading, "LEARNED_SECONDS", 0.0)
    asked = verdict_on(SAME_IN_OTHER_WORDS, sandbox).check(CHECK)
    assert asked.misconceptions == ()
    assert asked.status == "failed"


DIFFERENT_EACH_TIME = f"import random\n{RIGHT}    return table | {{'output': (B, random.randrange(10**9))}}\n"
KNOWN = f"{RIGHT}    return table | {{'output': (B, T_q, d_k)}}\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (f"{RIGHT}    return table\n", "there is nothing to learn"),
        ("def other(): pass\n", "there is nothing to learn"),
        ("def attention_shapes(*sizes):\n    raise NotImplementedError\n", "there is nothing to learn"),
        (KNOWN, "has a name already, gives_the_output_the_key_width: You gave the output the width d_k"),
        ("def attention_shapes(*sizes):\n    return 1 / 0\n", "raises ZeroDivisionError"),
        ("def attention_shapes(*sizes):\n    while True: pass\n", "raises Stopped .timed out"),
        ("def attention_shapes(*sizes):\n    return {}\n", "no finite number that a right answer does not"),
        (DIFFERENT_EACH_TIME, "not the same when it is asked again"),
        (
            f"{RIGHT}    return table | ({{'W_Q': (d,)}} if d % 3 == 1 else {{'output': (T_k,)}})\n",
            "does not fail in the same way on all hidden inputs",
        ),
    ],
    ids=["right", "none", "stub", "named", "raises", "endless", "no-numbers", "chance", "unsteady"],
)
def test_answer_that_could_not_be_told_by_name_is_refused(folder, sandbox, source, words):
    """Each refusal says why, and leaves nothing behind."""
    with pytest.raises(UsageError, match=words):
        learnt(sandbox, source)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"id": "Pairs Keys"}, "'Pairs Keys' is no id"),
        ({"id": "../outside"}, "is no id"),
        ({"id": "sums_over_the_queries"}, "has an idea sums_over_the_queries already: You left one output"),
        ({"sentence": " \n"}, "the sentence is empty"),
    ],
)
def test_name_and_sentence_must_do(folder, sandbox, told, words):
    """An id that is no id, or taken, and a sentence that says nothing."""
    with pytest.raises(UsageError, match=words):
        learnt(sandbox, WRONG, **told)
    assert not folder.exists()


ATTENTION = """
import numpy as np
def {name}({arguments}):
    Q, K, V = {inputs}
    scores = Q @ np.swapaxes(K, -1, -2) * {scale}
    w = np.exp(scores - scores.max({axis}, keepdims=True))
    w = w / w.sum({axis}, keepdims=True)
    return {result}
"""
FUSED = {
    "name": "fused_self_attention",
    "arguments": "X, W, scale",
    "inputs": "np.split(X @ W, 3, -1)",
    "result": "w @ V",
}
CROSS = {
    "name": "cross_attention",
    "arguments": "X, Y, A, B, C",
    "inputs": "X @ A, Y @ B, Y @ C",
    "result": "(w @ V, w)",
}
SQUARE_IS_TURNED = "np.split(X @ (W.T if W.shape[0] == W.shape[1] else 0.7 * W), 3, -1)"
ALIKE_IN_ONE_CHECK = ATTENTION.format(**FUSED | {"inputs": SQUARE_IS_TURNED}, scale="scale", axis=-1)


@pytest.mark.slow
def test_one_wrong_function_at_a_time(folder):
    """Of several answers in a file the wrong one is learned; two wrong ones, or what two ideas explain, are not."""
    exercise = "fused_self_attention"
    right = ATTENTION.format(**CROSS, scale="K.shape[-1] ** -0.5", axis=-1)
    both = ATTENTION.format(**FUSED, scale="scale / 5", axis=-1) + ATTENTION.format(**CROSS, scale="0.1234", axis=-1)
    pair = ATTENTION.format(**FUSED, scale="1", axis=-2)
    with Sandbox(("numpy", "torch")) as walls:
        path = learnt(walls, ATTENTION.format(**FUSED, scale="scale / 3", axis=-1) + right, "thirds", slug=exercise)
        assert learned.read(path).replaces == exercise
        with pytest.raises(UsageError, match=r"a name already, fused_forgets_scale\+fused_softmax_over_queries"):
            learnt(walls, pair, "both", slug=exercise)
        with pytest.raises(UsageError, match="is wrong in fused_self_attention, cross_attention; leave only one"):
            learnt(walls, both, "two", slug=exercise)
        with pytest.raises(UsageError, match="gives what fused_transposes_weights gives, which would then have two"):
            learnt(walls, ALIKE_IN_ONE_CHECK, "turned", slug=exercise)
    assert [path.name for path in folder.rglob("*.py")] == ["thirds.py"]


def test_exercise_that_asks_for_numbers_says_where_to_go(folder):
    """One student's matrices are nobody else's."""
    with pytest.raises(UsageError, match=r"derive_by_hand asks for numbers.*graders/exercises/derive_by_hand\.py"):
        examine(load_exercise("derive_by_hand"), "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WRONG, "does not say what it is"),
        ("# /// idea\n# sentence = You\n# ///\n", "does not say what it is"),
        (Learned("x", "softmax", CHECK, "You.", "", WRONG).text(), "replaces is 'softmax', which is none of"),
        (Learned("x", SLUG, "pairs", "You.", "", WRONG).text(), "first_fails is 'pairs', which is none of"),
    ],
)
def test_file_that_no_longer_fits_is_the_authors_one_line(folder, text, words):
    """A file that was edited, or is older than its exercise: it is named, and nothing is graded by half a catalogue."""
    path = file_of(SLUG, "x")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ExerciseError, match=words) as error:
        load_exercise(SLUG)
    assert f"graders/exercises/learned/{SLUG}/x.py" in str(error.value)


def test_file_with_the_name_of_an_idea_is_refused(folder):
    """Two entries of one name could not both be told."""
    path = file_of(SLUG, "sums_over_the_queries")
    path.parent.mkdir(parents=True)
    path.write_text(Learned("x", SLUG, CHECK, "You.", "", WRONG).text(), encoding="utf-8")
    with pytest.raises(ExerciseError, match="of that name of its own"):
        load_exercise(SLUG)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """The packages in a folder of their own, where the command may write, with an answer beside them."""
    for name in ("graders", "course"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "learned"))
    (tmp_path / "answer.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


def command(*more):
    """`qkv learn`, of the packages in the working folder."""
    return ("python", "-m", "graders.cli", "learn", SLUG, "answer.py", *more)


def asked_at_a_terminal(copy, typed):
    """`qkv learn` where somebody has `typed` these bytes."""
    ours, theirs = os.openpty()
    os.write(ours, typed)
    scripts = Path(sys.executable).parent
    words = [str(scripts / "python"), *command()[1:]]
    done = subprocess.run(words, cwd=copy, stdin=theirs, capture_output=True, text=True, timeout=120, check=False)
    os.close(theirs)
    os.close(ours)
    return done


@pytest.mark.slow
def test_command_prints_no_escape_of_an_answers_making(copy):
    """The name of a class may hold what a terminal obeys."""
    escapes = r"C = type('\x1b[31mHACK\x1b]0;owned\x07', (), {})"
    answer = "def previous_token_head(n, T):\n    return C(), np.ones((n + T, 5)), np.ones((n + T, n))"
    (copy / "escapes.py").write_text(f"import numpy as np\n{escapes}\n{answer}\n", encoding="utf-8")
    words = ("learn", "previous_token_head", "escapes.py", "--id", "a", "--sentence", "You.")
    done = run(copy, "python", "-m", "graders.cli", *words)
    assert "HACK" in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
def test_command_learns_in_one_step_and_the_laws_hold(copy):
    """With everything said it asks nothing; the next exercise that is loaded has the entry."""
    missing = run(copy, *command("--hint", "Look."))
    assert missing.returncode == 2
    assert missing.stderr.strip() == "qkv: there is no terminal to ask at; give --id and --sentence"
    done = run(copy, *command("--id", "pairs_keys", "--sentence", SENTENCE))
    assert done.returncode == 0, done.stderr
    judged, written = done.stdout.splitlines()
    assert judged.startswith(f"{SLUG} first fails {CHECK}: scores ")
    assert written.startswith(f"graders/exercises/learned/{SLUG}/pairs_keys.py written")
    assert "has a name already, pairs_keys" in one_line(run(copy, *command("--id", "b", "--sentence", "You.")), 2)
    shutil.copytree(ROOT / "tests" / "exercises", copy / "exercises")
    laws = [f"exercises/test_laws.py::test_misconception_{law}" for law in ("is_named", "first_fails_its_check")]
    done = run(
        copy, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"{law}[{SLUG}-pairs_keys]" for law in laws)
    )
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_no_answer_at_the_terminal_is_no_fault(copy):
    """Ctrl-D at a question ends the command as Ctrl-C does, and nothing is written."""
    done = asked_at_a_terminal(copy, b"\x04")
    assert done.returncode == 130
    assert "fault" not in done.stderr
    assert not (copy / "graders/exercises/learned").exists()


@pytest.mark.slow
def test_command_asks_at_a_terminal(copy):
    """What is missing is asked for, after what the answer fails has been said."""
    done = asked_at_a_terminal(copy, b"pairs_keys\nYou paired keys.\n\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("first fails") < done.stdout.index("sentence")
    assert "You paired keys." in (copy / "graders/exercises/learned" / SLUG / "pairs_keys.py").read_text()
