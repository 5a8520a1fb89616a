"""Made-up verdicts for the tests of reports, and the pages they give: `python -m tests.reports.samples FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from graders.authoring import Check, CheckFailed, Misconception
from graders.reports.feedback import feedback_page
from graders.reports.message import message_for
from graders.student import StudentError
from graders.verdict import CheckResult, Finding, Verdict

SOURCE = """def fused_self_attention(X, W_qkv, scale):
    # Split the product into three equal parts.
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2)
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum(axis=0)
    return weights @ V, f"{len(X)} tokens", 3.5, None
"""


def check(
    id: str = "rows_sum_to_one", points: float = 2, title: str = "Each row of weights sums to 1", hint: str = ""
) -> Check:
    """A check that judges nothing."""
    return Check(id, points, title, lambda student: None, hint)


def idea(id: str, sentence: str, hint: str = "") -> Misconception:
    """A misconception whose answer nobody runs."""
    return Misconception(id, "softmax", "rows_sum_to_one", sentence, hint, None)


OVER_BATCH = idea(
    "normalises_over_the_batch",
    "Your columns sum to 1 instead of your rows: the softmax runs over the wrong axis.",
    "Which axis holds the keys?",
)
NO_SCALE = idea("forgets_to_scale", "You use the scores as they are; nothing multiplies them by `scale`.")
SWAPPED = idea("swaps_queries_and_keys", "You compute KQᵀ where QKᵀ belongs.")
OFF = CheckFailed("the sum of each row is off in 4 of 4 rows, first at [0]", expected=1.0, got=2.2701402, public=True)

WRONG_SCALE = CheckFailed(
    "fused_self_attention(X, W, 0.5) is off in 60 of 60 entries, first at [0, 0, 0]",
    expected=-0.31,
    got=0.2287731,
    hint="Does every call use the scale that it was given?",
)


def result(check: Check, status: str, outcome=None, ideas=(), source: str = SOURCE) -> CheckResult:
    """The result that grading would write."""
    message = message_for(check, status, outcome, source=source, misconceptions=ideas)
    score = check.points if status == "passed" else 0
    return CheckResult(check.id, check.title, check.points, score, status, message, tuple(i.id for i in ideas))


SHAPES = check("fused_shapes", 3, "The output has one row per token and d_k columns, batched or not")
SCALE = check("fused_scale", 4, "Scores are multiplied by `scale`, also when it changes between two calls")
LARGE = check("fused_large_scores", 3, "Scores in the thousands still give finite output")
INPUTS = check("fused_leaves_inputs", 2, "The arguments are what they were before the call")
HEAD = check("single_head", 3, "`SingleHead` gives the same numbers as the NumPy function", "Is W transposed?")
LINEAR = check("to_linear", 3, "The weights arrive in an `nn.Linear` as PyTorch stores them")

PERFECT = Verdict(
    "ada", "fused_self_attention", 18, 18, "process-only",
    tuple(result(c, "passed") for c in (check(points=3), SHAPES, SCALE, LARGE, INPUTS, HEAD)), (), 7, 0.4,
)  # fmt: skip

HALF = Verdict(
    "grace-hopper", "fused_self_attention", 5, 20, "process-only",
    (
        result(check(hint="Add up one row by hand."), "failed", OFF, (OVER_BATCH, NO_SCALE, SWAPPED)),
        result(SHAPES, "passed"),
        result(SCALE, "failed", WRONG_SCALE, (NO_SCALE,)),
        result(LARGE, "timeout", "your `fused_self_attention` was still running after 10 s"),
        result(INPUTS, "passed"),
        result(HEAD, "error", StudentError("SingleHead", "RuntimeError",
               "mat1 and mat2 shapes cannot be multiplied (12x5 and 3x9)", "scores = Q @ np.swapaxes(K, -1, -2)")),
        result(LINEAR, "error", StudentError("to_linear", "ValueError", "args were (array([[0.123]]),)",
               "weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum(axis=0)")),
        result(check("causal_large", 0, "The causal mask holds at every level of scores"), "not_run",
               "not run, because the time for this hand-in was over"),
    ),
    (
        Finding("info", "renamed", "The file was named grace_final(2).ipynb and is graded all the same."),
        Finding("warning", "edited_check", "The check cell `fused_scale` had been edited; ours was graded."),
    ), 7, 12.2,
)  # fmt: skip

UNGRADED = Verdict(
    "linus", "fused_self_attention", 0, 20, "process-only",
    tuple(result(c, "not_run", "not run, because the notebook could not be read") for c in (check(), SHAPES, SCALE)),
    (Finding("error", "merge_conflict", "fused_self_attention.ipynb holds merge conflict markers at line 88; "
             "hand in the version that you want graded."),), 7, 0.1,
)  # fmt: skip

SCRIPT = "<script>alert('mark')</script>"
HOSTILE = Verdict(
    f"bob{SCRIPT}", "fused_self_attention", 0, 5, "process-only",
    (
        CheckResult("x\"><img src=x onerror=alert(1)>", f"{SCRIPT} & title", 5, 0, "failed",
                    f"✗ x (0 of 5)   {SCRIPT}\n    got        </dd></dl>{SCRIPT} \x1b[31mred \u202eevil\n"
                    "no label {{ 7*7 }}",
                    (f"idea_{SCRIPT}", "[bold red]idea[/]"), (2, 3), (3, 2)),
        result(check("long", 0, "t" * 200), "failed", CheckFailed("w" * 400, got="g" * 500)),
    ),
    (Finding("warning", "odd<", f"[red]file[/red] {SCRIPT} \x00\ud800 named"),), 7, 0.1,
)  # fmt: skip

PAGES = {
    "perfect": lambda: feedback_page(
        PERFECT, [("fused_self_attention", SOURCE)], {"fused_self_attention": "Very clear. The comment helps."}
    ),
    "half": lambda: feedback_page(
        HALF,
        [
            ("fused_self_attention", SOURCE),
            ("explain_roles", "A query asks, a key advertises,\na value is handed over."),
        ],
        {
            "explain_roles": "Good picture.\nWhere does the library analogy break?",
            "whole_notebook": "See me on Friday.",
        },
        late_penalty=1,
        manual={"explain_roles": (3, 5), "explain_blend": (None, 5)},
    ),
    "ungraded": lambda: feedback_page(UNGRADED, []),
    "hostile": lambda: feedback_page(
        HOSTILE,
        [(SCRIPT, f"# {SCRIPT}\nx = '</pre>{SCRIPT}'\n%magic \u202e {{{{ 7*7 }}}}")],
        {SCRIPT: SCRIPT, "y": SCRIPT},
    ),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.html").write_text(page(), encoding="utf-8")
