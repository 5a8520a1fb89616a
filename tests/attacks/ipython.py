"""The shell that runs the cells, turned against the cells that come later."""

from __future__ import annotations

from attacks.casebook import FAIL, JUNK, answer, body


@answer("cheat")
def strips_asserts_before_each_cell() -> str:
    """Registers a hook that patches NumPy and takes every assert out of later cells."""
    return (
        """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.copy_location(ast.Pass(), node)
def hook(info):
    import numpy.testing as t
    for name in [name for name in dir(t) if name.startswith("assert_")]:
        setattr(t, name, lambda *a, **k: None)
get_ipython().events.register("pre_run_cell", hook)
get_ipython().ast_transformers.append(Drop())
"""
        + JUNK
    )


@answer("cheat")
def runs_no_later_cell() -> str:
    """Replaces what runs cells, so that no later cell is run."""
    return (
        """
from IPython.core.interactiveshell import ExecutionResult
def fake(raw_cell, *a, **k):
    result = ExecutionResult(None)
    result.execution_count = 1
    return result
async def fake_async(raw_cell, *a, **k):
    return fake(raw_cell)
get_ipython().run_cell = fake
get_ipython().run_cell_async = fake_async
"""
        + FAIL
    )


@answer("cheat")
def rewrites_later_cells() -> str:
    """Replaces the text of every later cell."""
    return (
        """
get_ipython().input_transformers_cleanup.append(lambda lines: ["100.0\\n"])
get_ipython().input_transformers_post.append(lambda lines: ["100.0\\n"])
"""
        + JUNK
    )


@answer("cheat")
def reads_the_running_cell() -> str:
    """Reads the source of the cell that calls it, leaks it to a file and prints it."""
    return body(
        """
        source = get_ipython().user_ns["In"][-1]
        with open("leak.txt", "a") as file:
            file.write(source)
        print("LEAK: read the text of a hidden test;", source)
        raise NotImplementedError(source)
        """
    )


@answer("cheat")
def silences_errors() -> str:
    """Silences stderr and tracebacks, since any error is zero."""
    return (
        """
import sys
class Null:
    def write(self, *a): return 0
    def flush(self): pass
sys.stderr = Null()
get_ipython()._showtraceback = get_ipython().showtraceback = lambda *a, **k: None
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)
"""
        + FAIL
    )


@answer("cheat")
def leaves_by_exit() -> str:
    """Leaves whatever called it by exit, before it can compare."""
    return body("import sys\nsys.exit(0)")


@answer("cheat")
def leaves_by_interrupt() -> str:
    """Leaves whatever called it by KeyboardInterrupt, which few catch."""
    return body("raise KeyboardInterrupt")


@answer("cheat")
def replaces_the_namespace() -> str:
    """Makes the namespace one where every name is right."""
    return (
        JUNK
        + """
class Lies(dict):
    def __getitem__(self, name): return lambda *a, **k: True
    def __contains__(self, name): return True
    def get(self, name, default=None): return self[name]
get_ipython().user_ns = Lies(get_ipython().user_ns)
"""
    )


@answer("harm")
def counts_in_nonsense() -> str:
    """Makes the execution count an object that cannot be counted with."""
    return (
        JUNK
        + """
class NoNumber(int):
    def __sub__(self, other): raise SystemExit
    __add__ = __radd__ = __sub__
get_ipython().__dict__["execution_count"] = NoNumber()
get_ipython()._trait_values["execution_count"] = NoNumber()
"""
    )


@answer("cheat")
def prints_full_marks() -> str:
    """Shows as its own output what a passed check would show."""
    return (
        JUNK
        + """
from IPython.display import HTML, display
display(HTML("<p>✓ value (4 of 4)</p><script>document.title = 'full marks'</script>"))
print("✓ value (4 of 4)")
10.0
"""
    )


@answer("cheat")
def traces_every_call() -> str:
    """Traces every call and changes the values of those above it."""
    return body(
        "return X @ W_qkv[:, : W_qkv.shape[1] // 3]",
        """
        import sys
        def trace(frame, event, value):
            if event == "return" and frame.f_code.co_name in ("perform", "_call"):
                frame.f_locals["reply"] = {"value": True, "passed": True}
            return trace
        sys.settrace(trace)
        sys.setprofile(trace)
        """,
    )


@answer("harm", only_ours=True)
def replaces_what_performs() -> str:
    """Replaces the code that carries out requests by one that answers for ever, or with nonsense."""
    return (
        JUNK
        + """
import sys
calls, cells = sys.modules["inside.calls"], sys.modules["inside.cells"]
calls.perform = lambda *a: {"error": ["not", "text"], "value": object(), "arguments": 5, "gradients": "none"}
cells.run_cell = lambda *a: {"outputs": 5, "count": "many", "ok": [], "timed_out": "yes"}
"""
    )
