"""Frames between the grader and a student's process: data comes out as it went in, and nothing hostile gets in."""

from __future__ import annotations

import contextlib
import enum
import json
import math
import tracemalloc
from collections import ChainMap, OrderedDict, UserDict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stnp
from safetensors.numpy import save

from graders.sandbox.inside import wire
from graders.sandbox.inside.wire import BadFrame, ModuleState, Other, Structure, Tensor

Pair = namedtuple("Pair", ["output", "weights"])


def through(tree: Any, tensors: bool = False) -> Any:
    """`tree` as the other side receives it."""
    frame = wire.encode(tree)
    header, payload = wire.check_lengths(frame[: wire.LENGTHS.size])
    body = frame[wire.LENGTHS.size :]
    assert len(body) == header + payload
    return wire.decode(body[:header], body[header:], tensors)


def same(got: Any, sent: Any) -> bool:
    """Equal in kind, shape, type and value, NaN included."""
    if isinstance(sent, np.ndarray):
        plain = type(got) is np.ndarray and got.dtype == sent.dtype.newbyteorder("=") and got.shape == sent.shape
        return plain and np.array_equal(got, sent, equal_nan=sent.dtype.kind == "f")
    if isinstance(sent, float) and math.isnan(sent):
        return isinstance(got, float) and math.isnan(got)
    if isinstance(sent, (list, tuple)):
        return type(got) is type(sent) and len(got) == len(sent) and all(map(same, got, sent))
    if isinstance(sent, dict):
        return got.keys() == sent.keys() and all(same(got[key], sent[key]) for key in sent)
    return type(got) is type(sent) and got == sent


# --- what goes in comes out -------------------------------------------------------------------------------------------

DTYPES = st.sampled_from(sorted(wire.DTYPES)).map(np.dtype)
ARRAYS = stnp.arrays(DTYPES, stnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
LEAVES = st.one_of(KEYS, st.floats(), ARRAYS)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner)),
    max_leaves=12,
)


@given(TREES)
def test_plain_data_comes_out_as_it_went_in(tree: Any) -> None:
    """Lists, tuples, dicts, numbers, text and arrays of every dtype keep type and value."""
    assert same(through(tree), tree)


@given(ARRAYS, st.booleans())
def test_memory_order_of_an_array_does_not_matter(array: np.ndarray, swap: bool) -> None:
    """Transposed, strided, reversed and big-endian arrays are sent as what they mean."""
    views = [array.T, array[..., ::-1] if array.ndim else array, np.asfortranarray(array)]
    for view in views:
        sent = view.astype(view.dtype.newbyteorder(">" if swap else "="))
        assert same(through(sent), sent)


@pytest.mark.parametrize("value", [10**30, -(10**30), 2**53, 1 << 63, math.inf, -math.inf, math.nan, -0.0, 1e-320])
def test_numbers_that_json_cannot_spell(value: float) -> None:
    """Huge whole numbers and infinities are numbers on the other side."""
    assert same(through([value]), [value])


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (np.float64(2.5), 2.5),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.longdouble(1.5), 1.5),
        (np.str_("text"), "text"),
        (np.float64("inf"), math.inf),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (True, True),
    ],
)
def test_numbers_of_other_kinds_are_plain_numbers(sent: Any, received: Any) -> None:
    """A NumPy scalar, fraction or decimal is worth what Python makes of it."""
    assert same(through(sent), received)


def test_long_doubles_become_doubles() -> None:
    """A longdouble array arrives in float64."""
    assert same(through(np.array([1, 2], dtype=np.longdouble)), np.array([1.0, 2.0]))


def test_masked_entries_become_nan() -> None:
    """A masked array is its data, with NaN where something is masked; whole numbers can be masked too."""
    assert same(through(np.ma.array([1, 2], mask=[False, True])), np.array([1.0, math.nan]))
    assert same(through(np.ma.array([1.0, 2.0])), np.array([1.0, 2.0]))


def test_subclasses_of_arrays_are_arrays() -> None:
    """np.matrix and a student's own subclass arrive as plain arrays."""

    class Own(np.ndarray):
        def __eq__(self, other: object) -> Any:
            return True

    for subclass in (np.matrix, Own):
        assert same(through(np.eye(2).view(subclass)), np.eye(2))


def test_arrays_of_objects_are_nested_lists() -> None:
    """An object array of numbers is the list that it holds."""
    assert through(np.array([1, 2.5, None], dtype=object)) == [1, 2.5, None]


@pytest.mark.parametrize("dtype", ["complex128", "datetime64[s]", "U4", "S4", "V8"])
def test_arrays_of_no_numbers_are_described(dtype: str) -> None:
    """What no exercise asks for is sent as a description."""
    assert isinstance(through(np.zeros(2, dtype=dtype)), Other)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).T,
        torch.ones(2, requires_grad=True) * 2,
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(2, 2, dtype=torch.bfloat16),
        torch.eye(3).to_sparse(),
        torch.tensor(1.5),
        torch.tensor([True, False]),
        torch.ones(2).neg(),
    ],
)
def test_tensors_are_arrays(tensor: torch.Tensor) -> None:
    """Whatever its layout, precision and graph, a tensor arrives as the array that it stands for."""
    got = through(tensor)
    expected = tensor.detach().to_dense()
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, expected.to(torch.float64).numpy())


def test_a_tensor_without_numbers_is_described() -> None:
    """A meta tensor and a complex one hold nothing that can be compared."""
    assert isinstance(through(torch.ones(2, device="meta")), Other)
    assert isinstance(through(torch.ones(2, dtype=torch.complex64)), Other)


def test_marked_arrays_arrive_as_tensors() -> None:
    """`Tensor` asks for a torch tensor on the student's side, writable and of the same dtype."""
    got = through(Tensor(np.ones(2, dtype=np.float32)), tensors=True)
    assert isinstance(got, torch.Tensor)
    assert got.dtype == torch.float32
    got += 1


def test_named_tuples_have_names_and_order() -> None:
    """A named tuple can be read either way."""
    assert through(Pair(1, 2)) == Structure("Pair", {"output": 1, "weights": 2}, (1, 2))


def test_objects_with_fields_are_structures() -> None:
    """A dataclass, a plain instance and one with slots show their public data, not their methods."""

    @dataclass
    class Result:
        output: int
        _private: int = 0

        def method(self) -> int:
            return self.output

    class Slotted:
        __slots__ = ("output",)

    slotted = Slotted()
    slotted.output = 3
    assert through(Result(3)) == Structure("Result", {"output": 3})
    assert through(slotted) == Structure("Slotted", {"output": 3})


def test_a_property_that_raises_is_no_field_of_value() -> None:
    """What an object cannot say is None; the rest of it is sent."""

    class Moody:
        good = 1

        @property
        def bad(self) -> int:
            raise AttributeError("no")

    assert through(Moody()).fields == {"good": 1, "bad": None}


@pytest.mark.parametrize("mapping", [OrderedDict(a=1), UserDict(a=1), ChainMap({"a": 1}, {"a": 2})])
def test_mappings_are_dicts(mapping: Any) -> None:
    """Any mapping is a dict."""
    assert through(mapping) == {"a": 1}


@pytest.mark.parametrize("sequence", [deque([1, 2]), range(1, 3)])
def test_sequences_are_lists(sequence: Any) -> None:
    """Any sequence is a list."""
    assert through(sequence) == [1, 2]


def test_keys_are_plain() -> None:
    """NumPy's numbers work as keys; what cannot be a key elsewhere becomes its description and breaks nothing."""
    got = through({np.int64(1): "one", (1, np.int8(2)): "pair", frozenset([1]): "set"})
    assert got[1] == "one"
    assert got[1, 2] == "pair"
    assert [type(key) for key in got][2] is Other


def test_modules_are_their_parameters() -> None:
    """A linear layer arrives as named arrays and its declared sizes."""
    got = through(torch.nn.Linear(2, 3))
    assert isinstance(got, ModuleState)
    assert {name: value.shape for name, value in got.parameters.items()} == {"weight": (3, 2), "bias": (3,)}
    assert got.sizes == {"in_features": 2, "out_features": 3}
    assert through(got).sizes == got.sizes


@pytest.mark.parametrize(
    "value", [print, int, object(), {1, 2}, (i for i in range(3)), b"bytes", slice(1), 1 + 2j, ...]
)
def test_what_is_no_data_is_described_and_equals_nothing(value: Any) -> None:
    """Functions, types, sets, generators and bytes cross as a type and a short text."""
    got = through(value)
    assert isinstance(got, Other)
    assert len(got.text) <= 200


def test_lone_halves_of_characters_become_question_marks() -> None:
    """Text that no file could hold does not reach the grader."""
    assert through(["\ud800", {"\udfff": 1}]) == ["?", {"?": 1}]


def test_what_is_nested_too_deep_is_cut() -> None:
    """A list that holds itself ends."""
    loop: list[Any] = []
    loop.append(loop)
    assert "deep" in repr(through(loop))


class Colour(enum.Enum):
    """An object with a name and a value."""

    RED = 1


def test_an_enum_member_shows_its_name_and_value() -> None:
    """Enum members are structures like any object."""
    assert through(Colour.RED).fields == {"name": "RED", "value": 1}


@pytest.mark.parametrize(
    "value",
    [
        range(10**12),
        np.broadcast_to(0.0, (10**6, 10**6)),
        np.zeros(wire.MAX_PAYLOAD, dtype=np.uint8),
        torch.zeros(1).expand(10**9),
    ],
)
def test_what_is_short_to_write_and_long_to_send_is_described(value: Any) -> None:
    """A huge range, broadcast or array costs neither side its memory."""
    assert isinstance(through([value])[0], Other)


@pytest.mark.parametrize(
    "value",
    [
        [0] * (wire.MAX_NODES + 1),
        [np.zeros(1)] * (wire.MAX_ARRAYS + 1),
        "x" * (wire.MAX_HEADER + 1),
        dict.fromkeys(range(wire.MAX_KEYS + 1)),
    ],
    ids=["nodes", "arrays", "text", "keys"],
)
def test_too_much_is_refused_before_it_is_sent(value: Any) -> None:
    """The sender says that a value is too large; it does not send what the receiver would take for an attack."""
    with pytest.raises(BadFrame):
        wire.encode(value)


def test_doubling_lists_end() -> None:
    """Twenty levels of [x, x] are a million parts: refused, and soon."""
    tree: Any = 0
    for _ in range(22):
        tree = [tree, tree]
    with pytest.raises(BadFrame, match="parts"):
        wire.encode(tree)


# --- nothing hostile gets in ------------------------------------------------------------------------------------------


def decode(header: Any, payload: bytes = b"") -> Any:
    """Decode a header given as JSON data or as bytes."""
    return wire.decode(header if isinstance(header, bytes) else json.dumps(header).encode(), payload)


ONE = save({"0": np.ones(2)})


def _with_table(table: dict[str, Any], data: bytes = b"\0" * 16) -> bytes:
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data


def _entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


HEADERS = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "empty": b"",
    "NaN": b"NaN",
    "Infinity": b"[-Infinity]",
    "deep JSON": b"[" * 100_000 + b"]" * 100_000,
    "deep lists": json.dumps(json.loads("[" * 500 + "]" * 500)).encode(),
    "deep tags": b'{"$":"tuple","items":[' * 200 + b"]}" * 200,
    "a bomb of empty lists": b"[" + b"[]," * 1_000_000 + b"[]]",
    "a bomb of empty dicts": b"[" + b"{}," * 1_000_000 + b"{}]",
    "digits": b"1" * 100_000,
    "no tag": {},
    "an unknown tag": {"$": "pickle", "data": ""},
    "a tag that is no text": {"$": ["array"]},
    "an array without name": {"$": "array"},
    "an array of another name": {"$": "array", "name": "0"},
    "an array whose name is a list": {"$": "array", "name": []},
    "an int that is none": {"$": "int", "value": "ten"},
    "an int that is infinite": b'{"$": "int", "value": 1e999}',
    "an int of many digits": {"$": "int", "value": "1" * 5000},
    "a float of another name": {"$": "float", "value": "1e999"},
    "a float that is a list": {"$": "float", "value": []},
    "a map of no pairs": {"$": "map", "items": [1]},
    "a map whose key is a list": {"$": "map", "items": [[[1], 1]]},
    "a map whose key is a map": {"$": "map", "items": [[{"$": "map", "items": []}, 1]]},
    "a map whose key is a structure": {
        "$": "map",
        "items": [[{"$": "structure", "type": "", "fields": {}, "items": None}, 1]],
    },
    "a map of keys that share a hash": {"$": "map", "items": [[n * (2**61 - 1), 0] for n in range(wire.MAX_KEYS + 1)]},
    "a tuple of text": {"$": "tuple", "items": "abc"},
    "a tuple of a dict": {"$": "tuple", "items": {"a": 1}},
    "a structure without fields": {"$": "structure", "type": "S", "items": None},
    "a structure whose fields are a list": {"$": "structure", "type": "S", "fields": [], "items": None},
    "a structure whose type is a number": {"$": "structure", "type": 1, "fields": {}, "items": None},
    "a module with text for a size": {"$": "module", "type": "M", "parameters": {}, "sizes": {"a": "1"}},
    "a module with an infinite size": b'{"$": "module", "type": "M", "parameters": {}, "sizes": {"a": 1e999}}',
    "a description without text": {"$": "other", "type": "O"},
    "a description of a list": {"$": "other", "type": "O", "text": ["x"]},
    "a list of too many parts": [0] * (wire.MAX_NODES + 1),
    "a map of too many parts": {"$": "map", "items": [[str(n), 0] for n in range(wire.MAX_NODES + 1)]},
    "lists of too many parts": [[0] * 1000] * (wire.MAX_NODES // 1000),
    "texts that would make a large array": ["x" * 1_000_000, *["y"] * 10_000],
    "texts that would make a large array, apart": [["x" * 1_000_000], [["y"]] * 10_000],
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_header_is_refused(name: str) -> None:
    """Whatever the header is, decoding raises BadFrame and nothing else."""
    with pytest.raises(BadFrame):
        decode(HEADERS[name])


PAYLOADS = {
    "stray bytes": b"x",
    "a table longer than the payload": (1 << 16).to_bytes(8, "little") + b"{}",
    "a table of 2^63 bytes": (1 << 63).to_bytes(8, "little") + b"{}",
    "a table that is no JSON": (2).to_bytes(8, "little") + b"}{",
    "a table longer than allowed": _with_table({str(i): _entry("U8", [0], 0, 0) for i in range(40_000)}, b""),
    "no such dtype": _with_table({"0": _entry("Q8", [16], 0, 16)}),
    "objects": _with_table({"0": _entry("O", [2], 0, 16)}),
    "half precision of another kind": _with_table({"0": _entry("BF16", [8], 0, 16)}),
    "eight-bit floats": _with_table({"0": _entry("F8_E4M3", [16], 0, 16)}),
    "complex": _with_table({"0": _entry("C64", [2], 0, 16)}),
    "a shape that does not fit": _with_table({"0": _entry("F64", [3], 0, 16)}),
    "a shape that overflows": _with_table({"0": _entry("F64", [2**32, 2**32], 0, 16)}),
    "a negative shape": _with_table({"0": _entry("F64", [-2], 0, 16)}),
    "a shape of no numbers": _with_table({"0": _entry("F64", ["2"], 0, 16)}),  # type: ignore[list-item]
    "too many dimensions": _with_table({"0": _entry("F64", [1] * 100 + [2], 0, 16)}),
    "offsets backwards": _with_table({"0": _entry("F64", [2], 16, 0)}),
    "offsets outside": _with_table({"0": _entry("F64", [2], 0, 1 << 40)}),
    "an overlap": _with_table({"0": _entry("F64", [2], 0, 16), "1": _entry("F64", [1], 8, 16)}),
    "a hole": _with_table({"0": _entry("F64", [1], 8, 16)}),
    "bytes after the end": ONE + b"more",
    "an array that nobody names": save({"0": np.ones(2), "1": np.ones(2)}),
    "another name": save({"other": np.ones(2)}),
    "cut short": ONE[:-1],
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_hostile_payload_is_refused(name: str) -> None:
    """Bad lengths, dtypes, shapes and overlaps raise BadFrame and nothing else."""
    with pytest.raises(BadFrame):
        decode({"$": "array", "name": "0"}, PAYLOADS[name])


def test_an_array_that_is_named_twice_is_refused() -> None:
    """Two names for one buffer would let one value change another."""
    with pytest.raises(BadFrame):
        decode([{"$": "array", "name": "0"}] * 2, ONE)


def test_a_name_that_stands_twice_in_a_table_means_one_array() -> None:
    """Doubled keys of either JSON give one meaning or none, never a crash."""
    text = (
        b'{"0":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"0":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}'
    )
    payload = len(text).to_bytes(8, "little") + text + b"\0" * 16
    try:
        got = decode(b'{"$":"tuple","$":"array","name":"1","name":"0"}', payload)
    except BadFrame:
        return
    assert got.shape in ((1,), (2,))


@pytest.mark.parametrize(
    ("header", "payload"), [(wire.MAX_HEADER + 1, 0), (0, wire.MAX_PAYLOAD + 1), (2**32 - 1, 2**64 - 1)]
)
def test_lengths_are_checked_before_anything_is_read(header: int, payload: int) -> None:
    """A frame that says it is huge is refused at its first twelve bytes."""
    with pytest.raises(BadFrame, match="are read"):
        wire.check_lengths(wire.LENGTHS.pack(header, payload))


@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_header_takes_little_memory(name: str) -> None:
    """Refusing costs a small multiple of what was sent, never what it asks for."""
    header = HEADERS[name] if isinstance(HEADERS[name], bytes) else json.dumps(HEADERS[name]).encode()
    tracemalloc.start()
    try:
        with pytest.raises(BadFrame):
            decode(header)
        assert tracemalloc.get_traced_memory()[1] < 16 * len(header) + (1 << 20)
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_random_bytes_are_refused_or_are_data(header: bytes, payload: bytes) -> None:
    """No bytes make the decoder raise anything but BadFrame."""
    with contextlib.suppress(BadFrame):
        decode(header, payload)


NODES = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.sampled_from(["0", "nan", "array"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["name", "value", "items", "fields", "type", "text", "sizes", "parameters"]), inner
        ),
        st.builds(
            lambda tag, rest: {"$": tag, **rest},
            st.sampled_from(sorted(wire._DECODERS)),
            st.dictionaries(st.sampled_from(["name", "value", "items", "fields", "type", "text"]), inner),
        ),
    ),
    max_leaves=15,
)


@given(NODES)
def test_any_json_is_refused_or_is_data(tree: Any) -> None:
    """No JSON, however it uses the tags, makes the decoder raise anything but BadFrame."""
    with contextlib.suppress(BadFrame):
        decode(json.dumps(tree).encode(), ONE)


@settings(max_examples=200)
@given(TREES, st.data())
def test_a_damaged_frame_is_refused_or_is_data(tree: Any, data: st.DataObject) -> None:
    """One changed byte never makes the decoder raise anything but BadFrame."""
    frame = bytearray(wire.encode(tree))
    position = data.draw(st.integers(0, len(frame) - 1))
    frame[position] ^= data.draw(st.integers(1, 255))
    try:
        header, payload = wire.check_lengths(bytes(frame[: wire.LENGTHS.size]))
        body = bytes(frame[wire.LENGTHS.size :])
        wire.decode(body[:header], body[header : header + payload])
    except BadFrame:
        pass
