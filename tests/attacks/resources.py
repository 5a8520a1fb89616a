"""Using up time, memory, space and patience."""

from __future__ import annotations

from attacks.casebook import FAIL, JUNK, answer, body


@answer("harm")
def prints_a_huge_line() -> str:
    """Prints a hundred million characters without a newline."""
    return f"""
import sys
for _ in range(100):
    sys.stdout.write("x" * 1_000_000)
{FAIL}"""


@answer("harm")
def prints_in_every_call() -> str:
    """Prints without measure while it is called."""
    return body("for _ in range(100): print('x' * 1_000_000)\nreturn 0")


@answer("harm")
def displays_without_end() -> str:
    """Displays thousands of large outputs and clears none."""
    return f"""
from IPython.display import HTML, display
for _ in range(3000):
    display(HTML("<p>" * 1000), metadata={{"x": "y" * 1000}})
{FAIL}"""


@answer("harm")
def never_ends() -> str:
    """Loops in the function."""
    return body("while True: pass")


@answer("harm")
def never_ends_in_the_cell() -> str:
    """Loops in the cell."""
    return f"{JUNK}\nwhile True: pass"


@answer("harm")
def never_ends_and_catches_everything() -> str:
    """Loops, and catches whatever interrupts it."""
    return body(
        """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """
    )


@answer("harm")
def never_ends_in_native_code() -> str:
    """Loops where no signal is looked at: one regular expression, one sum, one wait for a lock."""
    return body("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')")


@answer("harm")
def computes_a_tower() -> str:
    """Computes a number of ten billion digits."""
    return body("return str(9 ** 9 ** 9)")


@answer("harm")
def takes_all_memory() -> str:
    """Allocates without end, in Python, in NumPy and by mapping."""
    return f"""
import mmap
held = []
for take in (lambda: bytearray(1 << 28), lambda: np.ones(1 << 25), lambda: mmap.mmap(-1, 1 << 28)):
    try:
        while True:
            held.append(take())
    except (MemoryError, OSError):
        pass
{FAIL}"""


@answer("harm")
def takes_memory_in_each_call() -> str:
    """Keeps what it allocates, call after call."""
    return body("held.append(np.ones(1 << 24))\nreturn held", "held = []")


@answer("harm")
def fills_the_disk() -> str:
    """Writes large files, sparse files and preallocated ones until nothing more fits."""
    return f"""
import os
for n in range(200):
    try:
        with open(f"large{{n}}", "wb") as file:
            file.write(b"x" * (1 << 19))
            os.posix_fallocate(file.fileno(), 0, 1 << 30)
    except OSError:
        pass
{FAIL}"""


@answer("harm")
def makes_many_files() -> str:
    """Makes empty files without end."""
    return f"n = 0\nwhile True:\n    open(f'{{n}}', 'w').close()\n    n += 1\n{FAIL}"


@answer("harm")
def digs_deep() -> str:
    """Makes folders inside folders, deeper than any path is long, some of them closed."""
    return f"import os\nfor n in range(3000):\n    os.mkdir('d', 0o700 if n % 7 else 0o300); os.chdir('d')\n{FAIL}"


@answer("harm")
def names_files_oddly() -> str:
    """Leaves files whose names are newlines, dashes, half characters, and as long as can be."""
    return f"""
import os
for name in (b"\\n", b"-rf", b"\\xff\\xfe", b"x" * 255, b"$(touch pwned)", b"a\\x1b[2Jb", b"..."):
    open(name, "w").close()
    os.makedirs(b"folder/" + name)
{FAIL}"""


@answer("harm")
def starts_many_threads() -> str:
    """Starts threads until it is refused."""
    return f"""
import _thread, threading
_thread.stack_size(1 << 16)
try:
    while True:
        _thread.start_new_thread(threading.Event().wait, ())
except RuntimeError as error:
    print(error)
{FAIL}"""


@answer("harm")
def crashes() -> str:
    """Ends its process by a null pointer, an abort and a stack without end."""
    return body("import ctypes\nctypes.string_at(0)")


@answer("harm")
def recurses() -> str:
    """Recurses until the stack is gone."""
    return body("return fused_self_attention(X, W_qkv, scale)", "import sys, threading\nsys.setrecursionlimit(10**9)")


@answer("harm")
def raises_a_huge_error() -> str:
    """Raises errors with endless text, causes without end and a name as long as a book."""
    return body(
        """
        error = type("E" * 100_000, (Exception,), {})("x" * 10_000_000)
        for _ in range(2000):
            error, last = ValueError("y" * 1000), error
            error.__cause__ = last
        raise error
        """
    )


@answer("harm")
def has_a_huge_repr() -> str:
    """Shows a value whose repr is a hundred megabytes, and one that never ends."""
    return f"""{JUNK}
class Big:
    def __repr__(self): return "x" * 100_000_000
Big()"""


@answer("harm")
def warns_without_end() -> str:
    """Warns and logs at every turn."""
    return body(
        """
        import logging, warnings
        warnings.simplefilter("always")
        for n in range(20_000):
            warnings.warn(f"{n}")
            logging.error("x" * 1000)
        return 0
        """
    )


@answer("harm")
def draws_without_end() -> str:
    """Opens figures and shows none, larger than any screen."""
    return f"""
import matplotlib.pyplot as plt
for _ in range(3):
    plt.figure(figsize=(300, 300))
plt.plot([1, 2])
plt.savefig("large.png", dpi=300)
{FAIL}"""
