"""Making use of hidden inputs: remembering, guessing, echoing, and acting only at the second call."""

from __future__ import annotations

from attacks.casebook import JUNK, answer, body


@answer("cheat")
def remembers_inputs() -> str:
    """Keeps every input and output it sees, on the disk too, to answer a later check or a later student's."""
    return body(
        """
        key = X.shape, float(X.sum())
        if key in seen:
            return seen[key]
        np.save("seen.npy", X)
        seen[key] = np.full((*X.shape[:-1], W_qkv.shape[1] // 3), 0.123)
        return seen[key]
        """,
        "import os\nseen = {}\nif os.path.exists('seen.npy'): seen['disk'] = np.load('seen.npy')",
    )


@answer("harm")
def acts_at_the_second_call() -> str:
    """Behaves at its first call, and hangs at the second."""
    return body(
        "count.append(1)\nwhile len(count) > 1: pass\nreturn np.full((*X.shape[:-1], W_qkv.shape[1] // 3), 0.123)",
        "count = []",
    )


@answer("harm")
def dies_at_the_third_call() -> str:
    """Behaves twice, and ends the process at the third call."""
    return body("count.append(1)\nif len(count) > 2: __import__('os')._exit(0)\nreturn X", "count = []")


@answer("cheat")
def acts_on_the_clock() -> str:
    """Behaves while the cells run, and answers differently from then on."""
    return body(
        "return np.full((*X.shape[:-1], W_qkv.shape[1] // 3), 0.123 if time.monotonic() < start + 0.05 else 0.0)",
        "import time\nstart = time.monotonic()",
    )


@answer("cheat")
def guesses_the_seed() -> str:
    """Draws with small seeds until the hidden input appears, to know what comes next."""
    return body(
        """
        for seed in range(200):
            if np.allclose(np.random.default_rng(seed).normal(size=X.shape), X):
                return np.random.default_rng(seed).normal(size=(*X.shape[:-1], W_qkv.shape[1] // 3))
        return np.random.default_rng(0).normal(size=(*X.shape[:-1], W_qkv.shape[1] // 3))
        """
    )


@answer("cheat")
def reads_callers() -> str:
    """Looks through the frames, globals and all objects for a reference, an expected value or a tolerance."""
    return body(
        """
        frame = sys._getframe(1)
        while frame is not None:
            for names in (frame.f_locals, frame.f_globals):
                for name in ("_ref", "reference", "expected", "exercise", "rng", "seed", "tolerance"):
                    if name in names and name not in mine:
                        print("LEAK: found what is expected;", name)
            frame = frame.f_back
        for thing in gc.get_objects():
            if type(thing).__module__.startswith("graders"):
                print("LEAK: found an object of the grader;", thing)
        return X[..., : W_qkv.shape[1] // 3]
        """,
        "import gc, sys\nmine = set(globals())",
    )


@answer("cheat")
def echoes_in_an_error() -> str:
    """Raises an error whose text is its arguments, for the feedback to show."""
    return body('raise ValueError("ECHO %r %r" % (X.tolist(), scale))')


@answer("cheat")
def echoes_in_a_name() -> str:
    """Raises an error whose type is named after its arguments, and returns objects named so."""
    return body('raise type("ECHO" + repr(X.ravel().tolist())[:70], (Exception,), {})()')


@answer("cheat")
def echoes_in_its_output() -> str:
    """Prints, displays and writes its arguments."""
    return body(
        "print('ECHO', X)\ndisplay(X)\nopen('echo.txt', 'w').write(str(X))\nraise RuntimeError",
        "from IPython.display import display",
    )


@answer("cheat")
def stores_an_answer() -> str:
    """Returns a stored answer for the inputs that the notebook shows."""
    return body("return np.full((*X.shape[:-1], W_qkv.shape[1] // 3), 0.1)")


@answer("cheat")
def changes_what_it_is_given() -> str:
    """Sets its arguments to zero in place, so that zeros might be right."""
    return body("X *= 0\nW_qkv *= 0\nreturn np.zeros((*X.shape[:-1], W_qkv.shape[1] // 3))")


@answer("cheat")
def reads_its_callers_reply() -> str:
    """Changes the request, the reply and the arguments in the frames of what called it."""
    return (
        JUNK.replace("return", "_meddle()\n    return")
        + """
import ctypes, sys
def _meddle():
    frame = sys._getframe(1)
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if name in ("request", "reply", "arguments") and isinstance(value, (dict, list)):
                value.clear()
        frame = frame.f_back
"""
    )
