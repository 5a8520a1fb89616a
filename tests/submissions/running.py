"""Hand-ins that are hard to run: loops, exits, floods, processes, and harmless things that look alarming."""

from __future__ import annotations

from submissions.casebook import Notebook, code, edit, first_answer, insert_after, insert_before, stub, text, wrap


@edit("A56", "zero", slow=True)
def infinite_loop(notebook: Notebook) -> None:
    """The function never ends."""
    stub(notebook, "while True:\n    pass")


@edit("A57", "flag zero", slow=True)
def infinite_loop_that_swallows_interrupts(notebook: Notebook) -> None:
    """The function never ends and catches whatever would stop it."""
    stub(
        notebook,
        """
        kept = []
        while True:
            try:
                while True:
                    kept.append(0)
                    if len(kept) > 1000:
                        kept.clear()
            except BaseException:
                pass
        """,
    )


@edit("A58", "flag full", slow=True)
def long_work_outside_functions(notebook: Notebook) -> None:
    """A cell that no check needs sleeps for an hour."""
    insert_before(notebook, first_answer(notebook), "import time\ntime.sleep(3600)")


@edit("A59", "flag zero", slow=True)
def memory_without_end(notebook: Notebook) -> None:
    """The function allocates up to six gigabytes."""
    stub(notebook, "import numpy\nhog = [numpy.ones(8 * 2**20) for _ in range(96)]\nreturn hog")


@edit("A60", "flag zero")
def process_dies(notebook: Notebook) -> None:
    """The function ends its process."""
    stub(notebook, "import os\nos._exit(1)")


@edit("A61", "flag full")
def sys_exit(notebook: Notebook) -> None:
    """`sys.exit()` below the right function."""
    first_answer(notebook)["source"] = text(first_answer(notebook)) + "\nimport sys\nsys.exit()"


@edit("A62", "flag full zero")
def quit_call(notebook: Notebook) -> None:
    """`exit()`, which stops a kernel, below the right function."""
    first_answer(notebook)["source"] = text(first_answer(notebook)) + "\nexit()"


@edit("A63", "full")
def plots_that_want_a_window(notebook: Notebook) -> None:
    """Backends that need a screen, and plots that wait to be closed."""
    insert_before(
        notebook,
        first_answer(notebook),
        "%matplotlib notebook",
        "import matplotlib\nmatplotlib.use('TkAgg')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
        "%matplotlib qt\nplt.plot([2, 1]); plt.show(block=True)",
    )


@edit("A65", "full")
def warnings_on_stderr(notebook: Notebook) -> None:
    """The right result, and warnings on the way."""
    wrap(
        notebook,
        before="""
        import warnings
        import numpy
        warnings.simplefilter("always")
        warnings.warn("implicit dimension choice", UserWarning)
        numpy.log(numpy.zeros(1))
        """,
    )


@edit("A66", "full")
def logging_in_the_function(notebook: Notebook) -> None:
    """The right result, and a line in the log."""
    wrap(notebook, before='import logging\nlogging.warning("called")')


@edit("A67", "full")
def pip_install(notebook: Notebook) -> None:
    """Cells that try to install a package."""
    package = "--quiet --no-input --no-index surely-not-a-package-xyz"
    insert_before(notebook, first_answer(notebook), f"!pip install {package}", f"%pip install {package}")


@edit("A69", "full")
def syntax_error_in_a_scratch_cell(notebook: Notebook) -> None:
    """A cell that is no Python above the answer."""
    insert_before(notebook, first_answer(notebook), "for i in range(3)\n    print(i")


@edit("A74", "full")
def reseeds_the_generator(notebook: Notebook) -> None:
    """The right result from a function that seeds and replaces NumPy's generator."""
    head = "import numpy as np\nnp.random.seed(0); np.random.rand = lambda *shape: np.zeros(shape)"
    wrap(notebook, before="np.random.seed(0)", head=head)


@edit("A76", "full")
def top_level_await(notebook: Notebook) -> None:
    """`await` in a cell, and `asyncio.run` in another."""
    insert_before(
        notebook,
        first_answer(notebook),
        "import asyncio\nawait asyncio.sleep(0.1)",
        "async def f():\n    return 1\nasyncio.run(f())",
    )


@edit("A77", "flag full zero")
def multiprocessing_pool(notebook: Notebook) -> None:
    """The right function starts processes."""
    wrap(
        notebook,
        before="""
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        """,
    )


@edit("A78", "flag full", slow=True)
def print_flood(notebook: Notebook) -> None:
    """The right function prints twenty megabytes at each call."""
    wrap(notebook, before='for _ in range(20):\n    print("x" * 1_000_000)')


@edit("A79", "flag full")
def background_thread(notebook: Notebook) -> None:
    """A thread that keeps printing while checks run."""
    insert_before(
        notebook,
        first_answer(notebook),
        """
        import threading, time
        def chat():
            for number in range(400):
                print("tick", number); time.sleep(0.05)
        threading.Thread(target=chat, daemon=True).start()
        """,
    )


@edit("A82", "flag full")
def rebinds_np(notebook: Notebook) -> None:
    """A cell below the answer gives the name `np` to something else."""
    cell = first_answer(notebook)
    cell["source"] = "import numpy as _n\n" + text(cell).replace("np.", "_n.")
    insert_after(notebook, cell, code("import types\nnp = types.SimpleNamespace(zeros=_n.zeros)"))


@edit("A83", "flag full zero")
def changes_its_arguments(notebook: Notebook) -> None:
    """The right result, and zeros left in the arguments; only the check on that may fail."""
    wrap(notebook, after="for a in args:\n    if hasattr(a, 'shape'):\n        a *= 0")
