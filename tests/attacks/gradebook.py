"""Reaching for the gradebook, the answers and other students, and leaving something for later."""

from __future__ import annotations

from attacks.casebook import FAIL, JUNK, answer

FIND = """
import os, pathlib, sqlite3
places = [*pathlib.Path.cwd().parents, *map(pathlib.Path, os.environ.get("COURSE", "COURSE_FOLDER").split(":"))]
database = next((p / "gradebook.db" for p in places if (p / "gradebook.db").exists()), None)
database = database or places[-1] / "gradebook.db"
"""
"""Looks for the gradebook above its own folder and where the course lies; the test fills in that place."""

OF_ME = """notebook_id in (
    select n.id from submitted_notebook n join submitted_assignment a on a.id = n.assignment_id
    where a.student_id = 'me'
)"""
FULL = "(select max_score from grade_cells where grade_cells.id = cell_id)"


@answer("harm")
def reads_the_gradebook() -> str:
    """Reads hidden tests and other students' grades from the gradebook."""
    return f"""{FIND}
rows = sqlite3.connect(database).execute("select * from grade").fetchall()
print("LEAK: read the grades of others;", rows)
{FAIL}"""


@answer("cheat")
def gives_itself_extra_credit() -> str:
    """Writes extra credit for itself into the gradebook."""
    return f"""{FIND}
connection = sqlite3.connect(database)
connection.execute('''update grade set extra_credit = {FULL} where {OF_ME}''')
connection.commit()
{FAIL}"""


@answer("cheat")
def installs_a_trigger() -> str:
    """Installs a trigger in the gradebook: every later grade of its own becomes full marks."""
    return f"""{FIND}
connection = sqlite3.connect(database)
connection.execute('''create trigger bonus after update of auto_score on grade
    begin update grade set auto_score = {FULL} where {OF_ME}; end''')
connection.commit()
{FAIL}"""


@answer("harm")
def locks_the_gradebook() -> str:
    """Holds an exclusive lock on the gradebook, in a process that lives on for a minute if it can."""
    return f"""{FIND}
import subprocess, sys
hold = f"import sqlite3, time; c = sqlite3.connect({{str(database)!r}}); c.execute('begin exclusive'); time.sleep(40)"
try:
    subprocess.Popen([sys.executable, "-c", hold], start_new_session=True)
except OSError:
    sqlite3.connect(database).execute("begin exclusive")
{FAIL}"""


@answer("harm")
def locks_files_that_it_may_read() -> str:
    """Takes locks on every file of the course that it can open."""
    return f"""{FIND}
import fcntl, course
held = []
for path in [database, *pathlib.Path(course.__file__).parent.rglob("*")]:
    held.append(os.open(path, os.O_RDONLY))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
{FAIL}"""


@answer("harm")
def deletes_the_course() -> str:
    """Empties, renames and removes the gradebook and what lies beside it."""
    return f"""{FIND}
for act in (lambda: os.truncate(database, 0), lambda: os.rename(database, "mine"), lambda: os.unlink(database),
            lambda: os.rmdir(database.parent), lambda: os.chmod(database, 0), lambda: os.utime(database, (0, 0))):
    try:
        act()
    except OSError as error:
        print(error)
{FAIL}"""


@answer("cheat", only_ours=True)
def imports_the_answers() -> str:
    """Imports the grader's own module with the right answer."""
    return """
import sys
sys.path += ["COURSE_FOLDER", "GRADERS_FOLDER"]
try:
    from graders.exercises.fused_self_attention import fused_self_attention
except ImportError:
    import importlib.util
    spec = importlib.util.spec_from_file_location("answers", "GRADERS_FOLDER/graders/exercises/fused_self_attention.py")
    answers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(answers)
    fused_self_attention = answers.fused_self_attention
"""


@answer("cheat")
def reads_the_source_notebook() -> str:
    """Copies the answer from source/, from release/ and from other students' hand-ins."""
    return f"""{FIND}
import json, glob
{FAIL}
for pattern in ("source/**/*.ipynb", "submitted/**/*.ipynb", "release/**/*.ipynb"):
    for path in glob.glob(str(database.parent / pattern), recursive=True):
        for cell in json.load(open(path))["cells"]:
            text = "".join(cell["source"])
            if "swapaxes" in text and "def fused_self_attention" in text and "glob" not in text:
                exec(text)
"""


@answer("cheat")
def writes_its_own_verdict() -> str:
    """Writes a verdict, an autograded notebook and a timestamp where the grader would."""
    return f"""{FIND}
for name in ("autograded/me/verdict.json", "verdict.json", "submitted/me/timestamp.txt", "feedback/me/x.html"):
    for folder in (pathlib.Path("."), pathlib.Path(".."), database.parent):
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text('{{"score": 100}}')
        except OSError as error:
            print(error)
{JUNK}"""


@answer("harm")
def leaves_a_startup_file() -> str:
    """Writes IPython startup files, for the shell of every student graded later."""
    return f"""
import os, pathlib
startup = ".ipython/profile_default/startup"
for folder in (pathlib.Path(get_ipython().profile_dir.startup_dir), pathlib.Path.home() / startup):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "00-bonus.py").write_text("np = None")
    except OSError as error:
        print(error)
{FAIL}"""


@answer("harm")
def leaves_code_in_python_itself() -> str:
    """Writes a .pth file, a sitecustomize and a compiled cache into the Python that later students get."""
    return f"""
import numpy, course, site, sys, pathlib
packages = [pathlib.Path(module.__file__).parent for module in (numpy, course)]
for folder in {{*map(pathlib.Path, sys.path), *packages}}:
    for name in ("bonus.pth", "sitecustomize.py", "usercustomize.py", "__pycache__/checking.cpython-311.pyc"):
        try:
            (folder / name).write_text("import os; os._exit(0)")
        except OSError:
            pass
{FAIL}"""


@answer("cheat")
def changes_the_course_helpers() -> str:
    """Rewrites course.checking on the disk and in memory."""
    return f"""
import course.checking, pathlib
course.checking.close = course.checking.shape = course.checking.holds = lambda *a, **k: True
try:
    pathlib.Path(course.checking.__file__).write_text("def close(*a, **k): return True")
except OSError as error:
    print(error)
{JUNK}"""


@answer("harm")
def plants_links() -> str:
    """Plants symbolic and hard links to the gradebook where the grader might follow them."""
    return f"""{FIND}
for make in (os.symlink, os.link):
    for name in ("notes.txt", "answer.ipynb", "../notes.txt"):
        try:
            make(database, name)
        except OSError as error:
            print(error)
{FAIL}"""


@answer("cheat")
def shadows_numpy_by_a_written_module() -> str:
    """Writes its own numpy.py into its folder, which is first on the path, and imports it anew."""
    return (
        """
import sys
open("numpy.py", "w").write("def __getattr__(name): return lambda *a, **k: True")
open("json.py", "w").write("dumps = loads = lambda *a, **k: True")
for name in [name for name in sys.modules if name.split(".")[0] in ("numpy", "json", "inside")]:
    del sys.modules[name]
import numpy, json
"""
        + JUNK
    )


@answer("harm")
def changes_the_environment() -> str:
    """Sets variables that change what later processes load and where they write."""
    return f"""
import os, sys, tempfile
os.environ.update(LD_PRELOAD="/tmp/evil.so", PYTHONSTARTUP="/tmp/evil.py", PYTHONPATH="/tmp", HOME="/", TMPDIR="/")
os.environ.update(MPLCONFIGDIR="/", NBGRADER_EXECUTION="", OMP_NUM_THREADS="1000")
sys.path[:] = ["/tmp"]
tempfile.tempdir = "/"
os.chdir("/")
os.umask(0)
{FAIL}"""
