"""The course as people meet it: JupyterLab for the student, the formgrader for the instructor, in a real browser."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.conftest import hand_in, make_course, released

from graders.authoring import load_exercise
from graders.classroom import grade_class
from graders.settings import VERDICT, Course
from graders.verdict import Verdict

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SLUG = "attention_shapes"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 40_000
"""Milliseconds. A machine with two busy cores takes its time over a kernel's first answer."""

ANSWER = (
    "def attention_shapes(B, T_q, T_k, d, d_k, d_v): "
    "return dict(X_q=(B, T_q, d), X_kv=(B, T_k, d), W_Q=(d, d_k), W_K=(d, d_k), W_V=(d, d_v), Q=(B, T_q, d_k), "
    "K=(B, T_k, d_k), V=(B, T_k, d_v), scores=(B, T_q, T_k), weights=(B, T_q, T_k), output=(B, T_q, d_v))"
)
"""On one line, so that it does not matter how the editor indents."""


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    """A course in which one partly right hand-in is graded, and the released notebook as a student fetched it."""
    course = make_course(tmp_path_factory.mktemp("browser") / "course", SLUG)
    (course.root / "mine").mkdir()
    shutil.copy(course.released(SLUG), course.root / "mine")
    notebook = released(SLUG)
    (answer,) = [cell for cell in notebook["cells"] if cell["id"] == SLUG]
    answer["source"] = ANSWER.replace("output=(B, T_q, d_v)", "output=(B, T_q, d_k)")
    hand_in(course, "ada", SLUG, notebook)
    grade_class(course, load_exercise(SLUG))
    return course


@pytest.fixture(scope="module")
def server(course, tmp_path_factory) -> Iterator[str]:
    """The address of a JupyterLab in the course folder, with nobody's settings; its kernels end with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, home = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    open_to_tests = ["--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.port_retries=0"]
    own = {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data")}
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, *open_to_tests],
            cwd=course.root,
            env={**os.environ, **own, "PATH": scripts},
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(f"{address}/api", process, home / "log")
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    """Return once `url` answers; fail with the server's own words where it does not."""
    for _ in range(120):
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.25)
        else:
            return
    pytest.fail(f"JupyterLab does not answer:\n{log.read_text()}")


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; nothing is downloaded."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root, which containers often are; the pages are ours.
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    """A fresh page, tall enough that JupyterLab draws the whole notebook."""
    page = browser.new_page(viewport={"width": 1400, "height": 9000})
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def run_all(page) -> None:
    """Run > Run All Cells, once nothing is running: after an error the kernel drops what was asked in the meantime.

    Where JupyterLab asks something first (which kernel, say), it gets its own proposal.
    """
    for proposal in page.locator(".jp-Dialog .jp-mod-accept").all():
        proposal.click()
    page.wait_for_function(
        "[...document.querySelectorAll('.jp-InputPrompt')].every(prompt => !prompt.textContent.includes('*'))"
    )
    page.wait_for_selector(".jp-NotebookPanel-toolbar [data-status=idle]")
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")


def run_until(page, text: str) -> None:
    """Run All Cells until an output has `text`: a kernel that is still starting may drop what it is asked."""
    from playwright.sync_api import TimeoutError as Late

    output = page.locator(".jp-OutputArea-output", has_text=text).first
    for _ in range(3):
        with contextlib.suppress(Late):
            run_all(page)
            output.wait_for()
            return
    run_all(page)
    output.wait_for()


def test_student_reads_what_is_missing_and_then_that_it_is_there(server, page, course):
    """Run All on the released notebook says ✗ in words; with the answer typed in, the same cells say ✓."""
    page.goto(f"{server}/lab/tree/mine/{SLUG}.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    run_until(page, "✗ attention_shapes: no answer yet")
    first = page.locator(".jp-OutputArea-output", has_text="✗ attention_shapes: no answer yet")
    assert "Traceback" not in first.inner_text()

    page.locator(".cm-content", has_text="# YOUR CODE HERE").fill(ANSWER)
    run_until(page, "✓ all eleven names are there")
    page.locator(".jp-OutputArea-output", has_text="✓ W_V is the same for 5 tokens and for 100,000").wait_for()
    page.keyboard.press("Control+s")


def test_instructor_opens_a_graded_hand_in(server, page, course):
    """The formgrader lists the assignment, and a hand-in shows our message and the verdict's marks."""
    page.goto(f"{server}/formgrader")
    page.locator("a", has_text=SLUG).first.wait_for()
    page.goto(f"{server}/formgrader/gradebook/{SLUG}/{SLUG}")
    page.goto(server + page.locator("a", has_text="Submission #1").get_attribute("href"))
    page.get_by_text("output ends in d_k where d_v belongs").first.wait_for()

    verdict = Verdict.from_json((course.folder("autograded") / "ada" / SLUG / VERDICT).read_text(encoding="utf-8"))
    scores = [f"{check.score:g}" for check in verdict.checks]
    assert {"0", "4"} == set(scores)
    # The marks come with a request of their own, after the page.
    page.wait_for_function("document.querySelectorAll('input.score[placeholder]:not([placeholder=\"\"])').length == 5")
    assert [box.get_attribute("placeholder") for box in page.locator("input.score").all()] == scores
