"""Answers that are no arrays but say that they are, equal everything, or change while they are read."""

from __future__ import annotations

from attacks.casebook import answer, body


@answer("cheat")
def returns_an_array_that_always_agrees() -> str:
    """Returns an array subclass whose comparisons and NumPy functions always agree."""
    return body(
        "return np.empty((*X.shape[:-1], W_qkv.shape[1] // 3), dtype=object).view(Evil)",
        """
        class Evil(np.ndarray):
            def __array_function__(self, func, types, args, kwargs): return np.array(True)
            def __array_ufunc__(self, ufunc, method, *inputs, **kw): return np.array(True)
            def all(self, *a, **k): return True
            def any(self, *a, **k): return False
            def __eq__(self, other): return np.array(True)
            __ge__ = __le__ = __lt__ = __gt__ = __eq__
        """,
    )


@answer("cheat")
def returns_what_equals_everything() -> str:
    """Returns an object that agrees with whatever it is compared to, and is never unequal."""
    return body(
        "return Yes()",
        """
        class Yes:
            shape, dtype, ndim = (1,), np.dtype(float), 1
            def __eq__(self, other): return True
            __le__ = __lt__ = __ge__ = __gt__ = __contains__ = __bool__ = __eq__
            def __ne__(self, other): return False
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
            def __abs__(self): return 0.0
            def __float__(self): return 0.0
        """,
    )


@answer("cheat")
def becomes_another_array_each_time() -> str:
    """Returns an object whose __array__ gives another array at each conversion."""
    return body(
        "return Chameleon(X, W_qkv)",
        """
        class Chameleon:
            def __init__(self, X, W): self.X, self.W, self.n = X, W, 0
            def __array__(self, dtype=None, copy=None):
                self.n += 1
                return np.full((*self.X.shape[:-1], self.W.shape[1] // 3), 0.123 * self.n)
            __array_interface__ = property(lambda self: self.__array__().__array_interface__)
        """,
    )


@answer("cheat")
def lies_about_its_class() -> str:
    """Returns an object that says that its class is ndarray."""
    return body(
        "return Impostor()",
        """
        class Impostor:
            __class__ = property(lambda self: np.ndarray)
            dtype, shape, nbytes, ndim, size = np.dtype("float64"), (0,), 0, 1, 0
            def __eq__(self, other): return True
        """,
    )


@answer("harm")
def lies_about_its_length() -> str:
    """Returns sequences of no length, of a negative one, and of endless items."""
    return body(
        "return [Long(), Endless()]",
        """
        import collections.abc
        class Long(collections.abc.Sequence):
            def __len__(self): return 2**62
            def __getitem__(self, i): return i
        class Endless(collections.abc.Sequence):
            def __len__(self): return 3
            def __getitem__(self, i): return 1.0
            def __iter__(self):
                while True: yield 1.0
        """,
    )


@answer("cheat")
def returns_a_generator() -> str:
    """Returns a generator that could make itself right while it is read."""
    return body("return (row for row in X)")


@answer("harm")
def acts_when_it_is_unpickled() -> str:
    """Returns an object that runs a command when a process unpickles it."""
    return body(
        "return np.array([Bomb()], dtype=object)",
        """
        import os
        class Bomb:
            def __reduce__(self): return os.system, ("touch pwned",)
            def __reduce_ex__(self, protocol): return self.__reduce__()
            def __getstate__(self): return self.__reduce__()
        """,
    )


@answer("cheat")
def returns_objects_in_an_array() -> str:
    """Returns an object array whose entries agree with everything."""
    return body(
        "out = np.empty((*X.shape[:-1], W_qkv.shape[1] // 3), dtype=object)\nout.fill(Yes())\nreturn out",
        """
        class Yes(float):
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
            def __float__(self): return 0.0
        """,
    )


@answer("cheat")
def returns_a_mapped_file() -> str:
    """Returns an array that lies in a file, to change it after it was read."""
    return body("out = np.memmap('answer.bin', dtype=float, mode='w+', shape=(4, 4))\nreturn out")


@answer("cheat")
def masks_every_entry() -> str:
    """Returns an array whose every entry is masked: nothing to compare."""
    return body("return np.ma.masked_all((*X.shape[:-1], W_qkv.shape[1] // 3))")


@answer("cheat")
def returns_nothing_but_nan() -> str:
    """Returns NaN, which is never further than the tolerance."""
    return body("return np.full((*X.shape[:-1], W_qkv.shape[1] // 3), np.nan)")


@answer("cheat")
def returns_infinities() -> str:
    """Returns infinities, whose differences are NaN."""
    return body("return np.full((*X.shape[:-1], W_qkv.shape[1] // 3), np.inf)")


@answer("cheat")
def returns_what_broadcasts() -> str:
    """Returns one number, which NumPy would compare with every entry."""
    return body("return np.float64(0.0)")


@answer("cheat")
def returns_an_empty_array() -> str:
    """Returns no entries, all of which are right."""
    return body("return np.empty((0, *X.shape[1:-1], W_qkv.shape[1] // 3))")


@answer("cheat")
def returns_other_numbers() -> str:
    """Returns complex numbers, dates, records and text where numbers belong."""
    return body(
        """
        count[0] += 1
        shape = (*X.shape[:-1], W_qkv.shape[1] // 3)
        return np.zeros(shape, dtype=["complex128", "M8[s]", "V8", "U3", [("a", "f8")]][count[0] % 5])
        """,
        "count = [0]",
    )


@answer("harm")
def returns_a_huge_array() -> str:
    """Returns an array of a terabyte that takes eight bytes."""
    return body("return np.broadcast_to(np.float64(0), (1 << 20, 1 << 17))")


@answer("harm")
def returns_itself() -> str:
    """Returns a list that holds itself, and one that doubles forty times."""
    return body("x = [0]\nfor _ in range(40): x = [x, x]\nloop = [x]\nloop.append(loop)\nreturn loop")


@answer("harm")
def returns_texts_that_swell() -> str:
    """Returns a long text among thousands of short ones: as an array each would be as long."""
    return body("return ['x' * 1_000_000] + ['y'] * 20_000")


@answer("cheat")
def a_dict_that_lies() -> str:
    """Returns a dict whose every entry is there and right."""
    return body(
        "return Everything(output=1)",
        """
        class Everything(dict):
            def __contains__(self, key): return True
            def __getitem__(self, key): return 0.0
            def __missing__(self, key): return 0.0
            def __eq__(self, other): return True
        """,
    )


@answer("harm")
def hangs_when_it_is_described() -> str:
    """Returns an object whose repr and fields never end."""
    return body(
        "return Tar()",
        """
        class Tar:
            def __repr__(self):
                while True: pass
            __str__ = __dir__ = __repr__
        """,
    )


@answer("harm")
def exits_when_it_is_read() -> str:
    """Returns an object that ends the process of whoever reads it."""
    return body(
        "return Trap()",
        """
        import os
        class Trap:
            @property
            def output(self): os._exit(0)
        """,
    )


@answer("cheat")
def returns_what_it_was_given() -> str:
    """Returns its own argument, so that changing one changes the other."""
    return body("X[...] = 0\nW_qkv[...] = 0\nreturn X[..., : W_qkv.shape[1] // 3]")
