"""Shapes in symbols: which size stands where which belongs.

Where every size of a signature has a value of its own, the number in a wrong place names a symbol: an output of shape
(5, 11, 17) "ends in d_k where d_v belongs". Facts of this kind follow from a contract and may be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Names = Mapping[int, str]


def naming(sizes: Mapping[str, int]) -> Names:
    """What each number is called that a student may write: a symbol, two or three times one, or a product of two.

    `sizes` holds a distinct number for each symbol; from distinct primes above 3, no two of the names collide.
    """
    symbols = {size: symbol for symbol, size in sizes.items()}
    multiples = {k * size: f"{k}·{symbol}" for size, symbol in symbols.items() for k in (2, 3)}
    products = {a * b: f"{symbols[a]}·{symbols[b]}" for a in symbols for b in symbols}
    return products | multiples | symbols


def in_symbols(shape: Iterable[int], names: Names) -> tuple[str, ...]:
    """`shape` with each size called by its name, or by its number where it has none."""
    return tuple(names.get(size, str(size)) for size in shape)


def written(symbols: Sequence[str]) -> str:
    """Symbols as Python writes a tuple: `(B, T_q, d)`."""
    return f"({', '.join(symbols)}{',' if len(symbols) == 1 else ''})"


def difference(expected: Sequence[str], got: Sequence[str]) -> str:
    """What is wrong with `got`, as the rest of a sentence that its name begins: "ends in d_k where d_v belongs"."""
    if len(got) != len(expected):
        axes = "1 axis" if len(got) == 1 else f"{len(got)} axes"
        return f"has {axes} where {len(expected)} belong: {written(got)} for {written(expected)}"
    last = len(expected) - 1
    return " and ".join(
        _place(axis, last, seen) + f" where {right} belongs"
        for axis, (right, seen) in enumerate(zip(expected, got, strict=True))
        if right != seen
    )


def _place(axis: int, last: int, symbol: str) -> str:
    if axis == 0:
        return f"begins with {symbol}"
    return f"ends in {symbol}" if axis == last else f"has {symbol} in the middle"
