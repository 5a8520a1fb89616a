"""One hand-in's run: whatever its cells and functions do, the rest is graded, in bounded time, on its merits."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from graders.sandbox import child as child_module
from graders.sandbox import replies
from graders.sandbox import session as session_module
from graders.sandbox.box import Limits, Sandbox, Stopped
from graders.sandbox.inside import wire
from graders.sandbox.session import Session
from graders.settings import QKV
from sandbox.conftest import LIMITS, call, printed, run

GOOD = "def good(): return 1"
LIMIT_TRAITS = (
    "call_seconds", "cell_seconds", "hand_in_seconds", "memory", "file_bytes", "scratch_bytes", "open_files", "threads",
    "output_characters",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _little_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung child is killed sooner than in earnest."""
    monkeypatch.setattr(child_module, "GRACE_SECONDS", 0.3)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Sandbox]:
    """A sandbox in which calls and cells have six tenths of a second."""
    limits = Limits(call=0.6, cell=0.6, hand_in=6.0, memory=256 << 20, file=1 << 20, scratch=8 << 20)
    with Sandbox((), limits) as sandbox:
        yield sandbox


def graded(sandbox: Sandbox, *sources: str, asked: str = "good") -> Any:
    """What a call of `asked` brings after these cells: its value, or why there is none."""
    with Session(sandbox, sources) as session:
        session.run()
        return answered(session, asked)


def answered(session: Session, name: str) -> Any:
    """The value of `name()`, its error's type, or why it was stopped."""
    try:
        reply = session.perform(call(name))
    except Stopped as stop:
        return stop.cause
    return reply["error"]["type"] if "error" in reply else reply["value"]


# --- cells ------------------------------------------------------------------------------------------------------------

BLOCKS = "while True: pass"
SWALLOWS = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
IN_NATIVE_CODE = "sum(range(10**12))"
HOLDS_A_LOCK = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
SLEEPS = "import time; time.sleep(60)"
WAITS = "import asyncio; await asyncio.sleep(60)"


@pytest.mark.parametrize("source", [BLOCKS, SWALLOWS, IN_NATIVE_CODE, HOLDS_A_LOCK, SLEEPS, WAITS])
def test_a_hung_cell_is_cut_off_and_the_others_run(hasty: Sandbox, source: str) -> None:
    """However it hangs, it costs its time, says so, and the cells before and after it count."""
    with Session(hasty, ["before = 1", source, GOOD]) as session:
        cells = session.run()
        assert answered(session, "good") == 1
        assert session.perform({"op": "read", "name": "before"})["value"] == 1
    assert cells[1].stopped == "stopped after 0.6 s: is there a loop that never ends?"
    assert [bool(cell.stopped) for cell in cells] == [False, True, False]


@pytest.mark.parametrize(
    "source",
    [
        "import os; os._exit(0)",
        "import os; os.abort()",
        "import ctypes; ctypes.string_at(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; os.closerange(3, 60)",
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    ],
)
def test_a_cell_that_ends_its_process_is_left_out(hasty: Sandbox, source: str) -> None:
    """An exit, a crash or a closed channel costs that cell; the others run again without it."""
    with Session(hasty, [GOOD, source, "after = 1"]) as session:
        cells = session.run()
        assert answered(session, "good") == 1
        assert session.perform({"op": "read", "name": "after"})["value"] == 1
    assert cells[1].stopped.startswith("stopped")


@pytest.mark.parametrize("source", ["import sys; sys.exit()", "exit()", "quit()", "exit", "raise SystemExit(3)"])
def test_an_exit_ends_its_cell_only(hasty: Sandbox, source: str) -> None:
    """sys.exit() and exit() after a right function cost nothing."""
    cells = run(hasty, f"{GOOD}\n{source}", "x = good()")
    assert [cell.ok for cell in cells] == [True, True]
    assert not any(cell.stopped for cell in cells)


@pytest.mark.parametrize(
    "source", ["1 / 0", "def", "raise KeyboardInterrupt", "raise GeneratorExit", "import nothing_like_it"]
)
def test_an_error_costs_its_cell_only(hasty: Sandbox, source: str) -> None:
    """Errors of every kind are outputs; the next cell runs."""
    cells = run(hasty, source, GOOD)
    assert cells[0].outputs[-1]["output_type"] == "error"
    assert (cells[0].ok, cells[1].ok) == (False, True)


def test_too_many_ends_are_said(hasty: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook that kills its process in every cell is given up, with the reason."""
    monkeypatch.setattr(session_module, "MAX_REPLAYS", 2)
    with Session(hasty, ["import os; os._exit(1)"] * 4 + [GOOD]) as session:
        session.run()
        with pytest.raises(Stopped, match="started again more than 2 times") as stop:
            session.perform(call("good"))
    assert stop.value.cause == "not_run"


def test_the_time_of_the_whole_is_bounded(hasty: Sandbox) -> None:
    """Many slow cells end with the hand-in's time; the rest say that they were not run."""
    started = time.monotonic()
    with Session(hasty, ["import time; time.sleep(0.5)"] * 20) as session:
        session._until = time.monotonic() + 1.2
        cells = session.run()
        with pytest.raises(Stopped, match="whole notebook"):
            session.perform(call("good"))
    assert time.monotonic() - started < 4
    assert "not run" in cells[-1].stopped


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["while True: pass", "import time; time.sleep(60)", "sum(range(10**12))", "import os; os._exit(0)"]
)
def test_a_stopped_call_costs_its_check_only(hasty: Sandbox, body: str) -> None:
    """The next call finds the notebook as it was, in a fresh process if need be; the cells' outputs are kept."""
    with Session(hasty, ["print('shown'); x = 41", f"def bad():\n    {body}", "def good(): return x + 1"]) as session:
        cells = session.run()
        assert answered(session, "bad") in ("timeout", "died")
        assert answered(session, "good") == 42
    assert printed(cells[0]) == "shown\n"


def test_a_name_is_stopped_twice_and_not_again(hasty: Sandbox) -> None:
    """The third call of a function that hangs costs nothing; others are still called."""
    with Session(hasty, ["def bad():\n    while True: pass", GOOD]) as session:
        session.run()
        assert [answered(session, "bad") for _ in range(2)] == ["timeout", "timeout"]
        started = time.monotonic()
        assert answered(session, "bad") == "not_run"
        assert time.monotonic() - started < 0.1
        assert answered(session, "good") == 1


@pytest.mark.parametrize(
    "statement", ["sys.exit(0)", "exit()", "raise KeyboardInterrupt", "raise SystemExit", "input()"]
)
def test_an_exit_in_a_call_is_an_error(hasty: Sandbox, statement: str) -> None:
    """Leaving is no answer."""
    source = f"import sys\ndef bad():\n    {statement}\n    return None"
    assert graded(hasty, source, asked="bad") in ("SystemExit", "KeyboardInterrupt", "StdinNotImplementedError", None)


def test_a_cell_that_was_cut_off_costs_little_in_a_replay(hasty: Sandbox) -> None:
    """What a cell did before it hung is done again, in a sixth of the time; what it put out is kept."""
    sources = [
        "print('start')\nx = 1\nimport time; time.sleep(60)",
        "def bad():\n    import os; os._exit(0)",
        "def good(): return x",
    ]
    with Session(hasty, sources) as session:
        cells = session.run()
        assert answered(session, "bad") == "died"
        started = time.monotonic()
        assert answered(session, "good") == 1
        assert time.monotonic() - started < 0.55
    assert printed(cells[0]).startswith("start")


def test_memory_that_runs_out_is_an_error_of_the_call(hasty: Sandbox) -> None:
    """An allocation without end is a MemoryError, and the process goes on."""
    assert graded(hasty, "def bad():\n    return bytearray(1 << 40)", asked="bad") == "MemoryError"


def test_a_value_that_cannot_be_sent_is_an_error(hasty: Sandbox) -> None:
    """Too large, exploding while it is read, exiting while it is read: the student's error, and the process goes on."""
    sources = [
        "def large(): return [0] * 1_000_000",
        "class C:\n    @property\n    def x(self): raise SystemExit\ndef exits(): return C()",
        "class D(dict):\n    def __iter__(self): raise ValueError\ndef explodes(): return D(a=1)",
        GOOD,
    ]
    with Session(hasty, sources) as session:
        session.run()
        assert [answered(session, name) for name in ("large", "exits", "explodes", "good")] == [
            "BadFrame",
            "SystemExit",
            "ValueError",
            1,
        ]


def test_a_value_that_hangs_while_it_is_read_is_a_timeout(hasty: Sandbox) -> None:
    """An object whose fields take for ever costs one call."""
    source = "class C:\n    @property\n    def x(self):\n        while True: pass\ndef bad(): return C()"
    with Session(hasty, [source, GOOD]) as session:
        session.run()
        assert answered(session, "bad") == "timeout"
        assert answered(session, "good") == 1


def test_what_one_fills_is_not_missing_to_another(walled: Sandbox) -> None:
    """A hand-in that writes all that it may, and stays, leaves its neighbour as much."""
    fills = "for name in '1234567':\n    with open(name, 'wb') as file: file.write(bytes(1 << 20))"
    with Session(walled, [fills]) as first, Session(walled, [fills]) as second:
        assert [first.run()[0].outputs, second.run()[0].outputs] == [[], []]


def test_cell_that_is_too_long_to_send_costs_itself(sandbox: Sandbox) -> None:
    """Megabytes of data in one cell are named; the cells beside it run."""
    before, long, after = run(sandbox, "a = 1", "#" * wire.MAX_HEADER, "print(a)")
    assert not before.stopped
    assert long.stopped.startswith("not run: ")
    assert printed(after) == "1\n"


# --- output -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "for _ in range(40): print('x' * 1_000_000)",
        "for _ in range(90_000): print('x' * 4, end='')",
        "import sys\nfor _ in range(2000): print('a'); print('b', file=sys.stderr)",
        "from IPython.display import display\nfor _ in range(2000): display(1)",
        "from IPython.display import HTML, display\nfor _ in range(20): display(HTML('<p>' * 100_000))",
        "'x' * 3_000_000",
        "raise ValueError('x' * 3_000_000)",
        "[' ' * 100] * 100_000",
    ],
)
def test_output_is_cut(sandbox: Sandbox, source: str) -> None:
    """A flood of any kind is small in the notebook, and the cell after it is as ever."""
    cells = run(sandbox, source, "print(1)")
    assert not any(cell.stopped for cell in cells)
    assert 0 < len(repr(cells[0].outputs)) < 2_100_000
    assert len(cells[0].outputs) <= 502
    assert printed(cells[1]) == "1\n"


def test_a_cut_is_said_once(sandbox: Sandbox) -> None:
    """Whoever reads the output learns that there was more."""
    output = printed(run(sandbox, "for _ in range(10): print('x' * 100_000)")[0])
    assert output.count("was cut") == 1


def test_outputs_of_all_cells_have_a_bound(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook may have thousands of cells: what they show together fills neither memory nor disk."""
    monkeypatch.setattr(session_module, "OUTPUTS", 1)
    loud = "print('x' * 199_999)"
    first, *_, last, quiet = run(sandbox, *[loud] * 8, "pass")
    assert len(printed(first)) == 200_000
    assert printed(last) == replies.CUT["text"]
    assert printed(quiet) == ""


@pytest.mark.parametrize(
    ("mime", "kept"), [("application/json", True), ("application/x+json", True), ("text/xjson", False)]
)
def test_only_json_is_kept_as_json(mime: str, kept: bool) -> None:
    """A notebook with anything else that is no text is none to nbformat."""
    shown = {"output_type": "display_data", "data": {mime: {"a": 1}}, "metadata": {}}
    (output,) = replies.outputs({"outputs": [shown]}, 1000)
    assert (mime in output["data"]) == kept


def test_metadata_of_nothing_but_structure_weighs_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects within objects have no text of their own, and take memory all the same."""
    nest: dict[str, object] = {}
    for _ in range(26):
        nest = {"": nest}
    shown = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {"a": [nest] * 3500}}
    assert replies.outputs({"outputs": [shown]}, 200_000) == [replies.CUT]
    shown["metadata"] = {"a": [[]] * 200_000}
    assert replies.outputs({"outputs": [shown]}, 200_000) == [replies.CUT]


def test_printing_in_a_call_costs_nothing(sandbox: Sandbox) -> None:
    """A right function that prints without measure is right; nothing of it is kept."""
    with Session(sandbox, ["def good():\n    for _ in range(50): print('x' * 100_000)\n    return 1"]) as session:
        session.run()
        assert answered(session, "good") == 1


def test_a_thread_that_goes_on_printing_changes_no_answer(sandbox: Sandbox) -> None:
    """What it prints lands in whatever cell runs; results are the function's."""
    source = (
        "import threading, time\ndef chat():\n    while True:\n        print('tick'); time.sleep(0.001)\n"
        "threading.Thread(target=chat, daemon=True).start()"
    )
    with Session(sandbox, [source, "import time; time.sleep(0.05)", GOOD]) as session:
        cells = session.run()
        assert [answered(session, "good") for _ in range(5)] == [1] * 5
    assert all(cell.ok for cell in cells)


def test_a_worker_pool_fails_without_a_trace(sandbox: Sandbox) -> None:
    """Processes cannot be started: an error or a timeout, and nothing left over."""
    source = "import multiprocessing\ndef bad():\n    with multiprocessing.get_context('fork').Pool(2) as p:\n"
    source += "        return p.map(abs, [-1])"
    assert graded(sandbox, source, asked="bad") in ("PermissionError", "OSError", "timeout")


# --- a child that lies ------------------------------------------------------------------------------------------------

LINK = """
import gc, json, os, struct, sys, threading, time
link = next(o for o in gc.get_objects() if type(o).__name__ == "Link")
frames = [sys._getframe(i) for i in range(20) if i < 15]
requests = next(f.f_locals["request"] for f in frames if "request" in f.f_locals and "link" in f.f_locals)
def frame(tree, nonce=None):
    header = json.dumps(tree).encode()
    return struct.pack("<IQ", len(header), 0) + header
def reply(nonce, value=1):
    return frame({"$": "map", "items": [["nonce", nonce], ["value", value]]})
def nonce_now():
    f = sys._getframe(1)
    while "request" not in f.f_locals or "link" not in f.f_locals:
        f = f.f_back
    return f.f_locals["request"]["nonce"]
"""

NONCE_TRUE = "frame({'$': 'map', 'items': [['nonce', True]]})"
LIES = {
    "answers twice": "link._socket.sendall(reply(nonce_now()) * 2); time.sleep(0.1)",
    "answers for the next, too": "link._socket.sendall(reply(nonce_now()) + reply(nonce_now() + 1)); time.sleep(1)",
    "answers another question": "link._socket.sendall(reply(nonce_now() + 1)); time.sleep(0.5)",
    "answers without a nonce": "link._socket.sendall(frame({'$': 'map', 'items': []})); time.sleep(0.5)",
    "answers true for a nonce": f"link._socket.sendall({NONCE_TRUE}); time.sleep(0.5)",
    "answers a list": "link._socket.sendall(frame([])); time.sleep(0.5)",
    "sends no frame": "link._socket.sendall(b'HTTP/1.1 200 OK and more'); time.sleep(0.5)",
    "promises a huge frame": "link._socket.sendall(struct.pack('<IQ', 2**32 - 1, 2**63)); time.sleep(0.5)",
    "promises more than it sends": "link._socket.sendall(struct.pack('<IQ', 100, 100)); time.sleep(60)",
    "sends slowly": "[(link._socket.sendall(b'\\0'), time.sleep(0.05)) for _ in range(1000)]",
    "sends a descriptor along": "__import__('socket').send_fds(link._socket, [b'x'], [0]); time.sleep(60)",
    "sends out of band": "link._socket.send(b'x', 1); time.sleep(60)",
    "says no more": "link._socket.shutdown(1); time.sleep(60)",
}


@pytest.mark.parametrize("name", LIES)
def test_a_child_that_breaks_the_protocol_is_stopped(hasty: Sandbox, name: str) -> None:
    """Doubled, late, forged, unfinished and oversized replies end the child; a new one answers the next call."""
    with Session(hasty, [LINK, f"def bad():\n    {LIES[name]}", GOOD]) as session:
        session.run()
        first = answered(session, "bad")
        second = answered(session, "good")
        assert {first, second} & {"protocol", "timeout", "died"}, (first, second)
        assert answered(session, "good") == 1


def test_a_child_that_reads_along_harms_only_itself(hasty: Sandbox) -> None:
    """A thread that takes the questions away costs answers, never more."""
    body = "threading.Thread(target=lambda: link._socket.recv(1 << 20), daemon=True).start()"
    with Session(hasty, [LINK, f"def bad():\n    {body}", GOOD]) as session:
        session.run()
        assert answered(session, "bad") is None
        assert {answered(session, "good") for _ in range(3)} <= {1, "timeout", "died", "protocol", "not_run"}


def test_a_forged_reply_is_only_a_value(hasty: Sandbox) -> None:
    """Whoever finds the nonce may say what the function would have returned; the doubled reply costs the next call."""
    body = "link._socket.sendall(reply(nonce_now(), 99)); os._exit(0)"
    with Session(hasty, [LINK, f"def bad():\n    {body}", GOOD]) as session:
        session.run()
        assert answered(session, "bad") == 99
        assert answered(session, "good") in (1, "died")


CELL_LIES = {
    "no outputs": '"outputs": 3, "count": "x", "ok": 1',
    "outputs that are none": '"outputs": [1, None, [], {"output_type": 5}, {"output_type": "x"}], "count": -1',
    "arrays for data": '"outputs": [{"output_type": "display_data", "data": {1: np.ones(3), "text/plain": np.ones(3),'
    ' "application/json": {"a": np.ones(2), 3: 4, "f": float("nan"), "l": (1, [2])}}, "metadata": np.ones(2)}],'
    ' "count": 2**70,'
    ' "ok": True',
    "a stream of numbers": '"outputs": [{"output_type": "stream", "name": 3, "text": ["x"]}], "ok": None',
    "an error of lists": '"outputs": [{"output_type": "error", "ename": [], "evalue": {}, "traceback": [1, "l"]}]',
    "a flood": '"outputs": [{"output_type": "stream", "name": "stdout", "text": "x" * 1000}] * 20_000, "ok": True',
}


@pytest.mark.parametrize("name", CELL_LIES)
def test_outputs_are_made_well_formed(hasty: Sandbox, name: str) -> None:
    """Whatever a child calls its outputs, what the grader keeps is valid in a notebook."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type] # 3 s of CPU that no schema here needs
    nbformat = pytest.importorskip("nbformat")
    lie = f"import numpy as np, sys\nsys.modules['inside.cells'].run_cell = lambda *a: {{{CELL_LIES[name]}}}"
    cell = run(hasty, lie, "1")[1]
    outputs = [nbformat.from_dict(output) for output in cell.outputs]
    code = nbformat.v4.new_code_cell("1", outputs=outputs, execution_count=cell.count)
    nbformat.validate(nbformat.v4.new_notebook(cells=[code]))
    assert type(cell.ok) is bool
    assert len(repr(cell.outputs)) < 2_100_000


REPLIES = {
    "an error that is text": '{"error": "no"}',
    "an error that is a list": '{"error": [1]}',
    "an error of numbers": '{"error": {"type": 1, "message": None, "line": {}}}',
    "arguments that are a number": '{"value": 1, "arguments": 5, "gradients": 7, "parameters": [1]}',
    "an array for arguments": '{"value": 1, "arguments": np.ones(2), "gradients": [1, "x", np.ones(1)]}',
    "shapes of text": '{"value": 1, "parameters": {"a": "x", 1: (1,), "b": (1, 2), "c": (1, "x")}}',
    "nothing": "{}",
}


@pytest.mark.parametrize("name", REPLIES)
def test_replies_are_made_well_formed(hasty: Sandbox, name: str) -> None:
    """Whatever a child replies to a call, each field that the grader reads is of its type."""
    lie = f"import numpy as np, sys\nsys.modules['inside.calls'].perform = lambda *a: {REPLIES[name]}"
    with Session(hasty, [lie]) as session:
        session.run()
        reply = session.perform(call("f"))
    if "error" in reply:
        assert all(type(text) is str for text in reply["error"].values())
        return
    assert type(reply["arguments"]) is list
    assert all(item is None or type(item) is np.ndarray for item in reply["gradients"])
    assert reply["parameters"] in (None, {"b": (1, 2)})


def test_limits_are_what_the_session_says() -> None:
    """The defaults are those of the design: 10 s a call, 30 s a cell, 120 s a hand-in."""
    assert (Limits().call, Limits().cell, Limits().hand_in) == (10, 30, 120)
    assert LIMITS.for_child()["memory"] == LIMITS.memory


def test_every_limit_can_be_set_by_the_instructor() -> None:
    """Each field of Limits has a trait, with the same default, and what is set arrives."""
    assert QKV().limits() == Limits()
    numbers = {name: 1000 + count for count, name in enumerate(LIMIT_TRAITS)}
    assert sorted(asdict(QKV(**numbers).limits()).values()) == sorted(numbers.values())


def test_output_limit_is_what_the_instructor_set() -> None:
    """A fifth of it may be printed; a child that shows more is cut, and says so."""
    with Sandbox(("numpy",), Limits(output=1000)) as sandbox, Session(sandbox, ["print('x' * 300)"]) as session:
        (cell,) = session.run()
    first, note = cell.outputs
    assert first["text"] == "x" * 200
    assert "was cut" in note["text"]
