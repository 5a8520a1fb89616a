"""The `qkv` command. Each command imports what it needs, so that help answers at once."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from graders.settings import Course
    from graders.verdict import Verdict

FULL, LESS, USAGE, NOT_GRADED = 0, 1, 2, 3
"""Exit codes: full marks (or everyone graded), less, a command that makes no sense, something not graded."""

INTERRUPTED = 130


def in_words(command: Callable[..., int | None]) -> Callable[..., None]:
    """Errors that have an addressee become one line; others too, with the way to the traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        debug = click.get_current_context().find_root().params.get("debug")
        try:
            sys.exit(command(*args, **kwargs) or FULL)
        except click.ClickException:
            raise
        except (KeyboardInterrupt, click.Abort):  # the latter where a question was being asked
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # `qkv … | head`: whoever listened has heard enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FULL)
        except Exception as error:
            if debug:
                raise
            sys.exit(_say(error))

    return run


def _say(error: Exception) -> int:
    from graders.authoring import ExerciseError, UsageError
    from graders.intake import NotGradable
    from graders.sandbox.box import SandboxError

    if isinstance(error, NotGradable):
        click.echo(f"qkv: {error.finding.message}", err=True)
        return NOT_GRADED
    if isinstance(error, (ExerciseError, UsageError)):
        click.echo(f"qkv: {error}", err=True)
        return USAGE
    if isinstance(error, SandboxError):
        click.echo(f"qkv: {error}", err=True)
        return NOT_GRADED
    click.echo(f"qkv: {type(error).__name__}: {error} (this is a fault of ours; qkv --debug shows where)", err=True)
    return NOT_GRADED


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="qkv-graders")
def main(debug: bool) -> None:
    """Build, release and grade the course on queries, keys and values.

    Run it in the course folder, the one with nbgrader_config.py. nbgrader's own commands work there too.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    # One thread: the sandbox's fork server must not fork threads, and workers share the cores among them.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ["TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR"] = "1"


def _interrupt(*_args: object) -> None:
    """A polite kill is a Ctrl-C: what is done stays, what is under way ends."""
    raise KeyboardInterrupt


def slug_argument(required: bool = True) -> Callable[..., Any]:
    """A command's assignment, by its slug."""
    return click.argument("slug", required=required, metavar="SLUG" if required else "[SLUG]")


def _course() -> Course:
    from graders.settings import open_course

    return open_course()


def _chosen(slug: str | None) -> list[str]:
    from graders.authoring import slugs

    return [slug] if slug else slugs()


# --- making assignments -----------------------------------------------------------------------------------------------


@main.command()
@slug_argument(required=False)
@click.option("--force", is_flag=True, help="Throw away edits made by hand in source/.")
@in_words
def build(slug: str | None, force: bool) -> int:
    """Build source notebooks from lessons and exercises.

    \b
    qkv build                        all of them
    qkv build fused_self_attention   one

    Reads course/lessons/ and graders/exercises/, writes source/. A notebook that was edited by hand in source/ is never
    overwritten: qkv adopt takes the edit into the lesson.
    """
    from graders.build import write_source

    course = _course()
    for name in _chosen(slug):
        written = write_source(course.settings.exercise(name), course.folder("source"), force=force)
        click.echo(f"source/{name}/{name}.ipynb {'written' if written else 'is up to date'}")
    return FULL


@main.command()
@slug_argument(required=False)
@in_words
def release(slug: str | None) -> int:
    """Make the notebooks that students get, without any answer (nbgrader's generate_assignment).

    \b
    qkv release                        all of them
    qkv release fused_self_attention   one

    Reads source/, writes release/ and the gradebook.
    """
    from graders.releasing import release as make

    course = _course()
    for name in _chosen(slug):
        path = make(course, course.settings.exercise(name))
        click.echo(f"{path.relative_to(course.root)} released")
    return FULL


@main.command()
@slug_argument()
@in_words
def adopt(slug: str) -> int:
    """Take what was edited in source/SLUG back into its lesson.

    \b
    qkv adopt fused_self_attention

    Reads source/SLUG/SLUG.ipynb, writes course/lessons/SLUG.md and the notebook again. Answers and hidden checks
    belong to graders/exercises/SLUG.py; an edit of those is refused, and nothing is written.
    """
    from graders import build as building

    course = _course()
    exercise = course.settings.exercise(slug)
    path = course.folder("source") / slug / f"{slug}.ipynb"
    if not path.exists():
        raise click.UsageError(f"there is no {path.relative_to(course.root)}; qkv build {slug} makes it")
    lesson = building.lessons_folder() / f"{slug}.md"
    taken = building.adopt(exercise, building.load(path), lesson)
    building.write_source(exercise, course.folder("source"), force=True)
    for line in taken or ["nothing was edited"]:
        click.echo(line)
    return FULL


@main.command()
@slug_argument()
@click.option("--output", type=click.Path(path_type=Path), help="Where to write it; solution/SLUG.ipynb by default.")
@in_words
def solution(slug: str, output: Path | None) -> int:
    """Write the worked notebook of SLUG, to hand out when the assignment is over.

    \b
    qkv solution fused_self_attention
    qkv solution fused_self_attention --output worked.ipynb

    Reads the lesson and the exercise. Never touches source/ or release/.
    """
    from graders import build as building

    course = _course()
    path = output or course.root / "solution" / f"{slug}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    building.write_whole(path, building.dumps(building.solution(course.settings.exercise(slug))))
    click.echo(f"{path} written")
    return FULL


@main.command()
@slug_argument()
@click.option("--title", default="", help="The notebook's heading; made from the slug by default.")
@in_words
def new(slug: str, title: str) -> int:
    """Start a new exercise from a template: a lesson, an exercise module and a test that pass `make check` at once.

    \b
    qkv new rotary_positions
    qkv new rotary_positions --title "Rotary positions"

    Writes course/lessons/SLUG.md, graders/exercises/SLUG.py and tests/exercises/test_SLUG.py, then builds and releases
    it; never overwrites.
    """
    from graders.templates import start

    course = _course()
    for path in start(course, slug, title):
        click.echo(f"{path.relative_to(course.root)} written")
    return FULL


@main.command()
@slug_argument()
@click.argument("answer", type=click.Path(path_type=Path), metavar="ANSWER.py")
@click.option("--id", "id", metavar="ID", help="What to call the idea, as in forgets_the_batch.")
@click.option("--sentence", metavar="TEXT", help="What its authors read: You …")
@click.option("--hint", metavar="TEXT", help="Where they should look; may be empty.")
@in_words
def learn(slug: str, answer: Path, id: str | None, sentence: str | None, hint: str | None) -> int:
    """Add a wrong answer that you met to the catalogue, so that whoever hands it in next is told what it is.

    \b
    qkv learn fused_self_attention answer.py
    qkv learn fused_self_attention answer.py --id halves_the_scale --sentence "You halve the scale." --hint ""

    Judges the answer first and says what it fails; on a terminal it then asks for what is missing. Refused are an
    answer that passes, one that has a name already, and one that could not be told from another.
    Reads the file, writes graders/exercises/learned/SLUG/ID.py. That keeps the code as it is, so take names out of it
    first. It runs in the sandbox alone, and the laws that `make test` tries hold over it. Marks never change.
    """
    from graders.authoring import load_exercise
    from graders.learn import CALL_SECONDS, examine
    from graders.learn import learn as keep
    from graders.learned import behind, shown
    from graders.memory import bounded_memory
    from graders.reports.quote import printable
    from graders.sandbox.box import Limits, Sandbox
    from graders.single import read_answer

    exercise = load_exercise(slug)
    source = read_answer(answer)
    with Sandbox(exercise.uses, Limits(call=CALL_SECONDS)) as walls, behind(walls), bounded_memory():
        found = examine(exercise, source)
        click.echo(f"{found.replaces} first fails {found.first_fails}: {printable(found.what)}")
        told = _asked_for({"id": id, "sentence": sentence, "hint": hint})
        path = keep(exercise, source, found, **told)
    click.echo(f"{shown(path)} written; qkv grade {slug} --force names it in what was graded before, too")
    return FULL


def _asked_for(options: dict[str, str | None]) -> dict[str, str]:
    """The options, those that are missing from whoever sits at the terminal."""
    from graders.authoring import UsageError

    if not sys.stdin.isatty():
        missing = [f"--{name}" for name, value in options.items() if value is None and name != "hint"]
        if missing:
            raise UsageError(f"there is no terminal to ask at; give {' and '.join(missing)}")
        return {name: value or "" for name, value in options.items()}
    return {
        name: click.prompt(name, default="" if name == "hint" else None, show_default=False) if value is None else value
        for name, value in options.items()
    }


# --- grading ----------------------------------------------------------------------------------------------------------


@main.command()
@slug_argument()
@click.option("--student", "students", multiple=True, metavar="ID", help="Only this student; may be given again.")
@click.option("--jobs", type=click.IntRange(min=0), default=0, help="Hand-ins at the same time; 0: as many as cores.")
@click.option(
    "--scheduler",
    default="",
    metavar="ADDRESS",
    help="Grade on the dask cluster of this scheduler, as tcp://10.0.0.7:8786, and not on this machine.",
)
@click.option("--force", is_flag=True, help="Grade again what was graded and has not changed.")
@in_words
def grade(slug: str, students: tuple[str, ...], jobs: int, scheduler: str, force: bool) -> int:
    """Grade a class.

    \b
    qkv grade fused_self_attention
    qkv grade fused_self_attention --student ada --force
    qkv grade fused_self_attention --scheduler tcp://10.0.0.7:8786

    Reads submitted/*/SLUG/ and release/SLUG/, writes autograded/ (notebook and verdict.json of each student),
    feedback/ and the gradebook. Never touches source/. What was graded before and has not changed is skipped, so an
    interrupted run can simply be started again. Workers of a cluster need the installed package, not this folder.
    Exit code: 0 everyone was graded, 3 someone could not be.
    """
    from graders.ahead import SandboxAhead, needs_sandbox

    if jobs and scheduler:
        raise click.UsageError("--jobs is for this machine; with --scheduler the cluster has as many as it has workers")
    course = _course()
    scheduler = course.settings.scheduler_for(jobs, scheduler)
    with contextlib.ExitStack() as stack:
        ahead = None
        if not scheduler and needs_sandbox(course, slug, students, force=force):
            ahead = stack.enter_context(SandboxAhead(course, slug))
        # Only now what takes seconds to import.
        from graders.reports.progress import ClassProgress

        progress = stack.enter_context(ClassProgress(slug))
        exercise = course.settings.exercise(slug)
        from graders.classroom import grade_class
        from graders.reports.table import show_class

        verdicts = grade_class(
            course,
            exercise,
            students=students,
            jobs=jobs,
            scheduler=scheduler,
            force=force,
            ahead=ahead,
            progress=progress.graded,
            started=progress.started,
        )
    show_class(verdicts)
    click.echo(f"verdicts in autograded/*/{slug}/verdict.json, pages in feedback/*/{slug}/{slug}.html")
    return FULL if all(verdict.graded for verdict in verdicts) else NOT_GRADED


@main.command()
@slug_argument()
@click.option("--anonymous", is_flag=True, help="Leave names out: students become numbers, findings lose file names.")
@in_words
def report(slug: str, anonymous: bool) -> int:
    """Say what a class misunderstood, in a page to read, print and teach from.

    \b
    qkv report fused_self_attention
    qkv report fused_self_attention --anonymous

    Reads autograded/*/SLUG/verdict.json and the exercise's catalogue, writes reports/SLUG/: report.html, hand_ins.csv,
    ideas.csv and report.json. Never touches marks.
    """
    from graders.reports.class_report import report as make

    course = _course()
    for path in make(course, slug, anonymous=anonymous):
        click.echo(f"{path.relative_to(course.root)} written")
    return FULL


def sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--sandbox none is for an author's own notebooks, and must be asked for twice."""
    command = click.option(
        "--sandbox", type=click.Choice(["auto", "bwrap+strict", "strict-no-namespace", "none"]), default="auto"
    )(command)
    return click.option(
        "--i-trust-this-code", "trusted", is_flag=True, help="Needed for --sandbox none, which has no walls at all."
    )(command)


@main.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@click.option("--student", default="", metavar="ID", help="The student's id in the roster.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the verdict here; - is stdout."
)
@click.option("--seed", type=int, help="Hidden inputs of an earlier verdict.")
@sandbox_options
@in_words
def check(notebook: Path, student: str, json_path: Path | None, seed: int | None, sandbox: str, trusted: bool) -> int:
    """Grade one notebook, without gradebook.

    \b
    qkv check submitted/ada/fused_self_attention/fused_self_attention.ipynb
    qkv check homework.ipynb --student ada --json verdict.json

    Reads the notebook and release/; writes nothing but the FILE of --json. The assignment is the one whose cells the
    notebook has. Exit code: 0 full marks, 1 less, 2 usage, 3 could not be graded.
    """
    from graders.single import check_notebook

    _ask_for_trust(sandbox, trusted)
    verdict = check_notebook(_course(), notebook, student, seed, sandbox)
    _report([verdict], json_path, many=False)
    return _code([verdict])


@main.command()
@slug_argument()
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="ANSWER.py…")
@click.option("--student", default="", metavar="ID", help="The student's id, for exercises with personal numbers.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a list of verdicts here, in the order given; - is stdout.",
)
@click.option("--seed", type=int, help="Hidden inputs of an earlier verdict.")
@click.option("--counterexample", is_flag=True, help="Show the smallest input on which each wrong answer is wrong.")
@sandbox_options
@in_words
def judge(
    slug: str,
    answers: tuple[Path, ...],
    student: str,
    json_path: Path | None,
    seed: int | None,
    counterexample: bool,
    sandbox: str,
    trusted: bool,
) -> int:
    """Judge answers in plain Python files against all checks of SLUG.

    \b
    qkv judge attention_shapes answer.py
    qkv judge fused_self_attention a.py b.py --json verdicts.json
    qkv judge fused_self_attention answer.py --counterexample

    Reads the files; needs no notebook and writes nothing but the FILE of --json. A counter-example shows what is right:
    it is for you, or for a student to whom you give it. Exit code: 0 all of them full marks, 1 less, 2 usage,
    3 could not be graded.
    """
    from graders.single import judge_files

    _ask_for_trust(sandbox, trusted)
    verdicts = judge_files(slug, answers, student, seed, sandbox)
    _report(verdicts, json_path, many=True)
    if counterexample:
        _show_counterexamples(slug, answers, student, sandbox, aside=str(json_path) == "-")
    return _code(verdicts)


def _show_counterexamples(slug: str, answers: tuple[Path, ...], student: str, sandbox: str, *, aside: bool) -> None:
    """Print them after the verdicts, `aside` on stderr where stdout is for a program."""
    from graders.authoring import load_exercise
    from graders.counterexample import counterexamples
    from graders.memory import bounded_memory
    from graders.sandbox.box import Sandbox

    exercise = load_exercise(slug)
    with Sandbox(exercise.uses, kind=sandbox) as walls, bounded_memory():  # type: ignore[arg-type]
        for path in answers:
            text = counterexamples(exercise, path.read_text(encoding="utf-8-sig", errors="replace"), walls, student)
            click.echo(f"\n{path.name}: {text}", err=aside)


def _ask_for_trust(sandbox: str, trusted: bool) -> None:
    if sandbox == "none" and not trusted:
        raise click.UsageError("--sandbox none runs code without any walls; add --i-trust-this-code if it is your own")


def _report(verdicts: list[Verdict], json_path: Path | None, *, many: bool) -> None:
    from graders.reports.table import verdict_text

    if json_path is None or str(json_path) != "-":
        click.echo("\n\n".join(verdict_text(verdict) for verdict in verdicts))
    if json_path is None:
        return
    data = [json.loads(verdict.to_json()) for verdict in verdicts]
    text = json.dumps(data if many else data[0], indent=1, ensure_ascii=False) + "\n"
    if str(json_path) == "-":
        click.echo(text, nl=False)
    else:
        json_path.write_text(text, encoding="utf-8")


def _code(verdicts: list[Verdict]) -> int:
    if not all(verdict.graded for verdict in verdicts):
        return NOT_GRADED
    return FULL if all(verdict.score == verdict.max_score for verdict in verdicts) else LESS


if __name__ == "__main__":
    main()
