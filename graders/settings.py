"""What an instructor may set in nbgrader_config.py under `c.QKV`, and where a course's folders lie."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from traitlets import Bool, Dict, Enum, Float, Integer, TraitError, Unicode
from traitlets.config import Config, Configurable

from course.instances import canonical
from graders.authoring import Exercise, UsageError, load_exercise
from graders.sandbox.box import Limits

CONFIG_FILE = "nbgrader_config.py"
VERDICT = "verdict.json"
HISTORY = "history.jsonl"

PREPROCESSORS = (
    "graders.nbgrader_plugins.Grade",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
)


def prepare_nbgrader() -> None:
    """What nbgrader needs of its surroundings: `alembic` on PATH for a new database, and no slow optional import."""
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = scripts + os.pathsep + os.environ.get("PATH", "")
    # nbformat's JSON Schema looks for it, to check a format that notebooks do not use, and loading it takes 3 s of CPU.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    if "nbgrader" not in sys.modules:  # which imports all that JupyterLab's server needs of it, half a second of CPU
        for name in ("assignment_list", "course_list", "validate_assignment", "formgrader"):
            module = ModuleType(f"nbgrader.server_extensions.{name}")
            module.__dict__["load_jupyter_server_extension"] = None
            sys.modules[module.__name__] = module
    os.environ["TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR"] = "1"
    warnings.filterwarnings("ignore", module="nbgrader")


def configure(c: Config, root: Path) -> None:
    """Set up nbgrader for the course in `root`; call it in nbgrader_config.py before the instructor's own settings.

    Classes are named, not imported: qkv reads the same file, and nbgrader's converters take seconds to load.
    """
    prepare_nbgrader()
    c.CourseDirectory.root = str(root)
    # An exchange in the course folder: release, fetch, submit and collect work without system paths.
    exchange = root / "exchange"
    exchange.mkdir(exist_ok=True)
    exchange.chmod(0o777)  # nbgrader wants students to be able to write there
    c.Exchange.root = str(exchange)
    c.Exchange.path_includes_course = True
    c.Autograde.exporter_class = "graders.nbgrader_plugins.IntakeExporter"
    c.Autograde.autograde_preprocessors = list(PREPROCESSORS)
    c.GenerateFeedback.exporter_class = "graders.nbgrader_plugins.FeedbackExporter"
    # Else what only the instructor should see would be copied into feedback, and a student's file of that name here.
    c.CourseDirectory.ignore = [
        ".ipynb_checkpoints",
        "*.pyc",
        "__pycache__",
        "feedback",
        ".*",
        VERDICT,
        HISTORY,
        "*.py",
    ]


class QKV(Configurable):
    """Settings of the grader."""

    call_seconds = Float(10.0, help="How long one call of a student's function may take.").tag(config=True)
    cell_seconds = Float(30.0, help="How long one cell may take.").tag(config=True)
    hand_in_seconds = Float(120.0, help="How long a whole hand-in may take, replays included.").tag(config=True)
    memory = Integer(2 << 30, help="Bytes a hand-in may allocate beyond what is loaded at its start.").tag(config=True)
    file_bytes = Integer(16 << 20, help="Bytes in one file that a hand-in writes.").tag(config=True)
    scratch_bytes = Integer(64 << 20, help="Bytes in all files that a hand-in writes.").tag(config=True)
    open_files = Integer(128, help="Files that a hand-in may have open.").tag(config=True)
    threads = Integer(256, help="Threads that a hand-in may have.").tag(config=True)
    output_characters = Integer(
        1_000_000, help="Characters that one cell may show, pictures included; a fifth of them as printed text."
    ).tag(config=True)
    jobs = Integer(0, help="Hand-ins graded at the same time; 0 takes the number of cores.").tag(config=True)
    scheduler = Unicode(
        help="The dask scheduler that classes are graded on, as 'tcp://10.0.0.7:8786'; empty for this machine."
    ).tag(config=True)
    points = Dict(
        help="Points other than an exercise's own, as {'slug': {'check': 3}}; build and release again after a change."
    ).tag(config=True)
    aliases = Dict(
        key_trait=Unicode(),
        value_trait=Unicode(),
        help="Other ids that students write as theirs, as {'a.lovelace': 'ada'}: the declared id, and the roster's.",
    ).tag(config=True)
    reveal_expected = Bool(
        False, help="Show students what was expected on hidden inputs, too. Once shown, anyone can pass it on."
    ).tag(config=True)
    sandbox: Any = Enum(
        ("auto", "bwrap+strict", "strict-no-namespace"),
        "auto",
        help="Which walls to ask for; auto takes the strongest.",
    ).tag(config=True)

    def limits(self) -> Limits:
        """The limits of one hand-in."""
        return Limits(
            call=self.call_seconds,
            cell=self.cell_seconds,
            hand_in=self.hand_in_seconds,
            memory=self.memory,
            file=self.file_bytes,
            files=self.open_files,
            processes=self.threads,
            scratch=self.scratch_bytes,
            output=self.output_characters,
        )

    def scheduler_for(self, jobs: int, asked: str) -> str:
        """The cluster that a class is graded on: the one `asked` for, else ours, unless `jobs` here are wanted."""
        return asked or ("" if jobs else self.scheduler)

    def aliases_of(self, student: str) -> list[str]:
        """The ids that the notebooks of `student`, an id of the roster, may declare instead."""
        return sorted(
            canonical(declared) for declared, id in self.aliases.items() if canonical(id) == canonical(student)
        )

    def exercise(self, slug: str) -> Exercise:
        """The exercise `slug` with the points set here."""
        return load_exercise(slug).with_points(self.points.get(slug, {}))


@dataclass(frozen=True)
class Course:
    """A course folder: where an instructor works. `config` is what its nbgrader_config.py says."""

    root: Path
    config: Config

    @property
    def settings(self) -> QKV:
        """The grader's settings for this course; UsageError where one is not of its kind."""
        try:
            return QKV(config=self.config)
        except TraitError as error:
            raise UsageError(f"in {CONFIG_FILE}, {error}; nothing was done") from None

    def folder(self, name: str) -> Path:
        """The folder for `source`, `release`, `submitted`, `autograded` or `feedback`, as nbgrader is told."""
        told = self.config.CourseDirectory.get(f"{name}_directory", name)
        return self.root / str(told)

    def hand_ins(self, slug: str) -> list[tuple[str, Path]]:
        """The students whose hand-in of `slug` was collected, in order of id, each with its folder."""
        submitted = self.folder("submitted")
        found = sorted(path for path in submitted.iterdir() if (path / slug).is_dir()) if submitted.is_dir() else []
        # A name that is no UTF-8 comes with half characters, which neither the gradebook nor a page can hold; spelled
        # out, so that two names stay two.
        return [(path.name.encode("utf-8", "backslashreplace").decode(), path / slug) for path in found]

    @property
    def db_url(self) -> str:
        """Where the gradebook is: SQLite in the folder, or what CourseDirectory.db_url says."""
        told = self.config.CourseDirectory.get("db_url", "")
        return str(told) if told else f"sqlite:///{self.root / 'gradebook.db'}"

    @property
    def course_id(self) -> str:
        """The course's id in the gradebook."""
        return str(self.config.CourseDirectory.get("course_id", "") or "default_course")

    def released(self, slug: str) -> Path:
        """The notebook that students were given."""
        return self.folder("release") / slug / f"{slug}.ipynb"


def open_course(root: Path | None = None) -> Course:
    """The course in `root`, by default the working folder. A configuration that does not load ends the command."""
    from traitlets.config.loader import PyFileConfigLoader

    root = (root or Path.cwd()).resolve()
    path = root / CONFIG_FILE
    if not path.exists():
        raise UsageError(
            f"{root} is no course folder: it has no {CONFIG_FILE}; change to the one that has, or clone the course"
        )
    loader = PyFileConfigLoader(path.name, path=str(root))
    try:
        config = loader.load_config()
    except SystemExit as error:
        raise UsageError(f"{error}; nothing was done") from None
    except Exception as error:  # nothing is graded by half of a configuration
        raise UsageError(f"{path.name} does not load: {type(error).__name__}: {error}; nothing was done") from None
    return Course(root, config)


def settings_of(parent: Any) -> QKV:
    """The settings as an nbgrader application with the same configuration file sees them."""
    return QKV(config=parent.config)
