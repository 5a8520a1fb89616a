"""Run a notebook's cells with IPython's InteractiveShell; outputs come back as nbformat dictionaries.

No kernel and no sockets: what a kernel would send is collected here, cut where it grows too large.
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import getpass
import io
import json
import os
import signal
import sys
import warnings
import zlib
from collections.abc import Iterable
from types import CodeType
from typing import Any

import matplotlib
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import SList
from matplotlib.backends.registry import backend_registry
from traitlets import Instance
from traitlets.config import Config

MOST = 1_000_000
"""Characters that a cell may show, where nothing else is said; a plot takes about 20,000."""
TEXT_SHARE = 5
"""Of these a fifth may be printed: text is read, and a picture is looked at."""
MAX_OUTPUTS = 500

INLINE = "module://matplotlib_inline.backend_inline"
WITHOUT_SCREEN = {"inline", "agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}

Output = dict[str, Any]


class Collector:
    """The outputs of the cell that runs now."""

    def __init__(self) -> None:
        self.most = MOST
        self.reset()

    def reset(self) -> None:
        """Start a new cell."""
        self.outputs: list[Output] = []
        self.clear_next = self.cut = False
        self.text_left, self.data_left = self.most // TEXT_SHARE, self.most

    def clear(self, wait: bool) -> None:
        """Forget what was shown, now or when the next output comes; a progress bar may do so for ever."""
        if wait:
            self.clear_next = True
        else:
            self.reset()

    def add(self, output: Output) -> None:
        """Keep `output`, unless the cell has shown too much already."""
        if self.clear_next:
            self.reset()
        self.data_left -= len(json.dumps(output, default=str))
        if self.data_left >= 0 and len(self.outputs) < MAX_OUTPUTS:
            self.outputs.append(output)
        else:
            self.note_cut()

    def text(self, name: str, text: str) -> None:
        """Append to a stream, joining it with the piece before."""
        if self.clear_next:
            self.reset()
        kept = text[: self.text_left]
        self.text_left -= len(kept)
        last = self.outputs[-1] if self.outputs else {}
        if kept and last.get("name") == name:
            last["pieces"].append(kept)
        elif kept and len(self.outputs) < MAX_OUTPUTS:
            self.outputs.append({"output_type": "stream", "name": name, "pieces": [kept]})
        if len(kept) < len(text) or len(self.outputs) >= MAX_OUTPUTS:
            self.note_cut()

    def note_cut(self) -> None:
        """Say, once, that something is missing."""
        if not self.cut:
            self.cut = True
            note = "[the rest of this cell's output was cut]\n"
            self.outputs.append({"output_type": "stream", "name": "stderr", "pieces": [note]})

    def taken(self) -> list[Output]:
        """The outputs as nbformat has them."""
        return [_finished(output) for output in list(self.outputs)]


def _finished(output: Output) -> Output:
    if "pieces" in output:
        return {"output_type": "stream", "name": output["name"], "text": "".join(output["pieces"])}
    return {name: value for name, value in output.items() if name != "_id"}


COLLECTOR = Collector()


class Stream(io.TextIOBase):
    """stdout or stderr of a cell."""

    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self.stream_name = name

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        COLLECTOR.text(self.stream_name, text)
        return len(text)


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in data.items()}


class Publisher(DisplayPublisher):
    """display(), update_display() and clear_output() into the collector."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_kwargs):  # type: ignore[no-untyped-def]
        display_id = (transient or {}).get("display_id")
        output = {"output_type": "display_data", "data": _plain(data), "metadata": metadata or {}}
        if update:
            for shown in COLLECTOR.outputs:
                if shown.get("_id") == display_id:
                    shown.update(data=output["data"], metadata=output["metadata"])
            return
        COLLECTOR.add(output | ({"_id": display_id} if display_id else {}))

    def clear_output(self, wait: bool = False) -> None:
        COLLECTOR.clear(wait)


class Hook(DisplayHook):
    """The value of a cell's last expression into the collector."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict, md_dict=None):  # type: ignore[no-untyped-def]
        count = self.prompt_count
        output = {"output_type": "execute_result", "data": _plain(format_dict), "metadata": md_dict or {}}
        COLLECTOR.add(output | {"execution_count": count})

    def finish_displayhook(self) -> None:
        self._is_active = False


PARSED: dict[str, ast.Module] = {}
"""Cells by their text, as Python reads them; none whose reading warns, since a warning belongs to whoever runs it."""


def _is_python(text: str) -> bool:
    """Whether `text` can be read as Python; what was read is kept."""
    if text in PARSED:
        return True
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if not told:
        PARSED[text] = tree
    return True


class Compiler(CachingCompiler):
    """Names cells as a kernel does, since warnings show the name; what was read or compiled before is not again."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled: dict[tuple[object, ...], tuple[list[ast.stmt], CodeType]] = {}
        self.keeps = False

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return f"/tmp/ipykernel_1/{zlib.crc32(raw_code.encode('utf-8', 'replace'))}.py"

    def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
        """`source` as Python reads it; read anew where a `from __future__` changes how, or a transformer the tree."""
        plain = symbol == "exec" and self.flags == PLAIN_FLAGS and not InteractiveShell.instance().ast_transformers
        if plain and source in PARSED:
            return ast.Module([*PARSED[source].body], [])  # to whose list of statements the shell may add one
        return super().ast_parse(source, filename, symbol)

    def __call__(self, source: Any, filename: str, symbol: str, **options: Any) -> CodeType:
        """The code of `source`; IPython hands a cell over statement by statement, each as a tree."""
        statements = source.body if isinstance(source, ast.Module | ast.Interactive) else []
        # An id is no other statement's while the statement is kept beside.
        key = (*map(id, statements), filename, symbol, self.flags)
        if statements and key in self.compiled:
            return self.compiled[key][1]
        if not statements or not self.keeps:
            return super().__call__(source, filename, symbol, **options)
        flags = self.flags
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            code = super().__call__(source, filename, symbol, **options)
        if not told and self.flags == flags:
            self.compiled[key] = statements, code
        return code


PLAIN_FLAGS = Compiler().flags
DEFAULT_TRANSFORMERS = TransformerManager().token_transformers


class Transformer(TransformerManager):
    """Rewrites magics and the like, as a kernel does."""

    def do_token_transforms(self, lines):  # type: ignore[no-untyped-def]
        """What is Python already holds none, and to cut it into tokens takes longer than to run most cells."""
        if self.token_transformers == DEFAULT_TRANSFORMERS and _is_python("".join(lines)):
            return lines
        return super().do_token_transforms(lines)


class Shell(InteractiveShell):
    """A shell without terminal, history file, debugger or screen."""

    input_transformer_manager: Any = Instance(Transformer, ())
    displayhook_class = Hook
    display_pub_class = Publisher
    compiler_class = Compiler

    def should_run_async(self, raw_cell, *, transformed_cell=None, preprocessing_exc_tuple=None):  # type: ignore[no-untyped-def]
        """Found out by compiling the cell once more, which only a cell with one of these words needs."""
        told = {"transformed_cell": transformed_cell, "preprocessing_exc_tuple": preprocessing_exc_tuple}
        some = "await" in str(transformed_cell) or "async" in str(transformed_cell)
        return some and super().should_run_async(raw_cell, **told)

    def compile_ahead(self, sources: Iterable[str]) -> None:
        """Read and compile cells that will be run, statement by statement as `run_ast_nodes` will ask for them."""
        compiler: Any = self.compile
        flags, compiler.keeps = compiler.flags, True
        for source in sources:
            with contextlib.suppress(Exception):  # whoever runs it is told what is wrong with it
                self._compile_one_ahead(compiler, source)
            compiler.flags = flags  # a `from __future__` is for those who run it
        compiler.keeps = False

    def _compile_one_ahead(self, compiler: Any, source: str) -> None:
        text = self.input_transformer_manager.transform_cell(source)
        name = compiler.get_code_name(source, text, 0)
        statements = PARSED[text].body if text in PARSED else []
        with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
            for statement in statements:
                if isinstance(statement, ast.Expr) and statement is statements[-1]:
                    compiler(ast.Interactive([statement]), name, "single")
                else:
                    compiler(ast.Module([statement], []), name, "exec")

    def _showtraceback(self, etype, evalue, stb):  # type: ignore[no-untyped-def]
        name = getattr(etype, "__name__", str(etype))
        output = {"output_type": "error", "ename": name, "evalue": _text_of(evalue)[:2000]}
        COLLECTOR.add(output | {"traceback": [str(line)[:4000] for line in stb][:50]})

    def ask_exit(self) -> None:
        """exit() ends a cell, not the notebook."""

    def enable_gui(self, gui=None):  # type: ignore[no-untyped-def]
        """There is no screen: %matplotlib qt and the like draw inline."""

    def enable_matplotlib(self, gui=None):  # type: ignore[no-untyped-def]
        return super().enable_matplotlib("inline")

    def system(self, cmd: str) -> None:
        """!command: the rest of the cell goes on, as in a kernel whose command failed."""
        print("[no commands are run while a notebook is graded]", file=sys.stderr)
        self.user_ns["_exit_code"] = 1

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):  # type: ignore[no-untyped-def]
        self.system(cmd)
        return SList() if split else ""


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a student's __str__ may do anything
        return ""


def _no_input(prompt: str = "", *_args: object) -> str:
    raise StdinNotImplementedError("input() has nobody to ask while a notebook is graded")


def _no_pager(*_args: object, **_kwargs: object) -> None:
    """Help opens in a pane beside the notebook; no output of the cell."""


def make_shell() -> Shell:
    """The shell that all cells of one hand-in share."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autocall = 0
    shell = Shell.instance(config=config)
    shell.builtin_trap.activate()
    shell.set_hook("show_in_pager", _no_pager, 99)
    _draw_inline()
    shell.run_cell("1/0")  # the first traceback loads what all later ones need
    shell.reset(new_session=True)
    shell.execution_count = 1
    COLLECTOR.reset()
    return shell


def _draw_inline() -> None:
    """Every figure goes into the notebook: MPLBACKEND says so, and this holds against matplotlib.use()."""
    use, load = matplotlib.use, backend_registry.load_backend_module
    replaced: Any = backend_registry
    matplotlib.use = lambda backend, *, force=True: use(_without_screen(backend), force=force)
    replaced.load_backend_module = lambda backend: load(_without_screen(backend))


def _without_screen(backend: Any) -> Any:
    known = not isinstance(backend, str) or backend.lower() in WITHOUT_SCREEN or backend.startswith("module://")
    return backend if known else INLINE


def _own_cache() -> str:
    """Where matplotlib may write: it remembers the zygote's folder, which no child can."""
    os.makedirs(os.environ["MPLCONFIGDIR"], exist_ok=True)
    return os.environ["MPLCONFIGDIR"]


def attach(shell: Shell) -> None:
    """Make the shell this process's own: its streams, and no way to ask a person."""
    builtins.input = getpass.getpass = _no_input  # type: ignore[assignment]
    sys.path.insert(0, "")  # a module that the notebook wrote with %%writefile can be imported
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    matplotlib.get_configdir = matplotlib.get_cachedir = _own_cache
    COLLECTOR.reset()


class CellTimeout(BaseException):
    """The cell's or the call's time is up; not an Exception, so that `except Exception` does not catch it."""


def _time_up(*_args: object) -> None:
    raise CellTimeout("stopped: its time was up")


def deadline(seconds: float) -> None:
    """Raise CellTimeout in this process after `seconds`; 0 switches it off."""
    if seconds:
        signal.signal(signal.SIGALRM, _time_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def run_cell(shell: Shell, source: str, seconds: float) -> dict[str, Any]:
    """Run one cell: `ok`, `timed_out`, its outputs and execution count."""
    COLLECTOR.reset()
    ok = timed_out = False
    try:
        deadline(seconds)
        result = shell.run_cell(source, store_history=True)
        deadline(0)
        ok = bool(result.success) or isinstance(result.error_in_exec, SystemExit)
        timed_out = isinstance(result.error_in_exec, CellTimeout)
    except CellTimeout:
        timed_out = True
    except BaseException as error:  # a student may have replaced what runs cells
        message = {"output_type": "error", "ename": type(error).__name__, "evalue": _text_of(error)[:2000]}
        COLLECTOR.add(message | {"traceback": []})
    finally:
        deadline(0)
    return {"ok": ok, "timed_out": timed_out, "outputs": COLLECTOR.taken(), "count": shell.execution_count - 1}
