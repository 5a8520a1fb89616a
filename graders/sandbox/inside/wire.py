"""Frames between the grader and a student's process: JSON for structure, safetensors for arrays, never pickle.

A frame is `u32 header length | u64 payload length | JSON header | safetensors payload`, little-endian. Every length is
checked before anything is allocated, every array's dtype against a list, and what cannot be sent as data is sent as a
description (`Other`) that equals nothing. Both ends use this module, so a value looks the same on either side.
"""

from __future__ import annotations

import enum
import functools
import json
import math
import numbers
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from safetensors.numpy import load, save

LENGTHS = struct.Struct("<IQ")
MAX_HEADER = 4 << 20
MAX_PAYLOAD = 16 << 20
MAX_DEPTH = 24
MAX_FIELDS = 64
MAX_ITEMS = 100_000
"""Of a sequence that is no list: `range(10**12)` is short to write and long to send."""
MAX_NODES = 200_000
MAX_ARRAYS = 5_000
MAX_KEYS = 2_000
"""Keys of a frame's dicts that are no texts, whose hash is salted. Anyone can name many numbers of one hash, and a dict
takes n² steps for n of them."""
MAX_MARKS = 1_500_000
"""Commas and opening brackets in a header: a bound on what it becomes when it is read, known before it is read."""
MAX_TABLE = 1 << 20
"""Bytes of safetensors' own header, which names the arrays."""
MAX_TEXT_CELLS = 16 << 20
"""Characters that NumPy would reserve for the texts of a frame's lists, each as wide as the longest."""
DTYPES = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)


class BadFrame(ValueError):
    """What arrived is not a frame of this protocol; its sender cannot be trusted to go on."""


@dataclass(frozen=True)
class Tensor:
    """An array that the other side receives as a torch tensor."""

    array: np.ndarray


@dataclass(frozen=True)
class Structure:
    """An object with named fields (a named tuple, a dataclass, any instance), as data.

    `items` holds the values in order where the object was also a sequence.
    """

    type: str
    fields: dict[str, Any]
    items: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class ModuleState:
    """The parameters of an `nn.Module` by name, and the sizes it declares."""

    type: str
    parameters: dict[str, np.ndarray]
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Other:
    """A value that is no data: only its type and a short description cross, and it equals nothing."""

    type: str
    text: str


# --- encoding ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(64)
def _carried(dtype: np.dtype) -> bool:
    """Whether arrays of `dtype` cross; remembered, since NumPy takes longer to name a dtype than we to send one."""
    return dtype.name in DTYPES


class _Encoder:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.bytes = self.nodes = self.keys = 0

    def array(self, value: np.ndarray, tag: str = "array") -> Any:
        if self.bytes + value.nbytes > MAX_PAYLOAD - MAX_TABLE:
            return _other(value, f"an array too large to send, of shape {value.shape}")
        if value.dtype.type is np.longdouble:
            value = value.astype(np.float64)
        if not _carried(value.dtype):
            return _other(value, f"an array of dtype {value.dtype}")
        if len(self.arrays) >= MAX_ARRAYS:
            raise BadFrame(f"the value holds more than {MAX_ARRAYS} arrays")
        self.bytes += value.nbytes
        name = str(len(self.arrays))
        # A copy in C order and native bytes: safetensors writes the buffer as it lies.
        self.arrays[name] = np.array(value, dtype=value.dtype.newbyteorder("="), order="C", copy=True)
        return {"$": tag, "name": name}

    def tree(self, value: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise BadFrame(f"the value has more than {MAX_NODES} parts")
        if depth > MAX_DEPTH:
            return {"$": "other", "type": "nested", "text": f"nested more than {MAX_DEPTH} deep"}
        if encode := _BY_TYPE.get(type(value)):
            return encode(self, value, depth + 1)
        for kinds, encode in _ENCODERS:
            if isinstance(value, kinds):
                return encode(self, value, depth + 1)
        torch = _torch()
        if torch is not None and isinstance(value, torch.Tensor):
            return self._torch_tensor(value)
        if torch is not None and isinstance(value, torch.nn.Module):
            return self._module(value, depth + 1)
        return self._instance(value, depth + 1)

    def _int(self, value: int, depth: int) -> Any:
        return int(value) if abs(value) < 1 << 53 else {"$": "int", "value": str(int(value))[:400]}

    def _float(self, value: float, depth: int) -> Any:
        return float(value) if math.isfinite(value) else {"$": "float", "value": str(float(value))}

    def _real(self, value: Any, depth: int) -> Any:
        # Fractions and decimals: exact on the student's side, a float on the grader's, as NumPy would make of them.
        try:
            return self._float(float(value), depth)
        except (OverflowError, ValueError, TypeError):
            return _other(value)

    def _list(self, value: list, depth: int) -> Any:
        return [self.tree(item, depth) for item in value]

    def _sequence(self, value: Sequence, depth: int) -> Any:
        return self._list(list(value), depth) if len(value) <= MAX_ITEMS else _other(value)

    def _tuple(self, value: tuple, depth: int) -> Any:
        if hasattr(value, "_fields"):
            fields = dict(zip(value._fields, value, strict=False))
            return self._structure(value, fields, depth, items=tuple(value))
        return {"$": "tuple", "items": self._list(list(value), depth)}

    def _mapping(self, value: Mapping, depth: int) -> Any:
        keys = list(value)
        self.nodes += len(keys)
        self.keys += sum(not isinstance(key, str) for key in keys)
        if self.keys > MAX_KEYS:
            raise BadFrame(f"the value has more than {MAX_KEYS} keys that are no texts")
        items = [[key if type(key) is str else self._key(key, depth), self.tree(value[key], depth)] for key in keys]
        return {"$": "map", "items": items}

    def _key(self, key: Any, depth: int) -> Any:
        """Only what can be a key again on the other side; an object that cannot becomes its description."""
        if isinstance(key, tuple) and depth <= MAX_DEPTH:
            return {"$": "tuple", "items": [self._key(item, depth + 1) for item in key]}
        plain = key.item() if isinstance(key, np.generic) else key
        if plain is None or isinstance(plain, (str, int, float)):
            return self.tree(plain, depth)
        return _other(key)

    def _ndarray(self, value: np.ndarray, depth: int) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            value = np.ma.filled(value.astype(np.float64), np.nan) if np.ma.is_masked(value) else np.ma.getdata(value)
        if value.dtype == object and value.size <= MAX_ITEMS:
            return self.tree(value.tolist(), depth)
        return self.array(np.asarray(value))

    def _scalar(self, value: np.generic, depth: int) -> Any:
        plain = float(value) if isinstance(value, np.longdouble) else value.item()
        if isinstance(plain, np.generic) or not isinstance(plain, (bool, int, float)):
            return _other(value)
        return self.tree(plain, depth)

    def _torch_tensor(self, value: Any) -> Any:
        if value.numel() > MAX_PAYLOAD:  # before it is laid out: an expanded tensor holds one number
            return _other(value, f"a tensor too large to send, of shape {tuple(value.shape)}")
        try:
            return self.array(_from_tensor(value))
        except (RuntimeError, TypeError, NotImplementedError) as error:  # a meta or nested tensor holds no array
            return _other(value, f"a tensor that holds no plain array ({type(error).__name__})")

    def _tensor(self, value: Tensor, depth: int) -> Any:
        return self.array(np.asarray(value.array), tag="tensor")

    def _plain(self, value: Any, depth: int) -> Any:
        return value

    def _other(self, value: Other, depth: int) -> Any:
        return {"$": "other", "type": value.type, "text": value.text}

    def _again(self, value: Structure, depth: int) -> Any:
        return self._structure(value, value.fields, depth, value.items, value.type)

    def _state(self, value: ModuleState, depth: int) -> Any:
        parameters = {name: self.array(array) for name, array in value.parameters.items()}
        return {"$": "module", "type": value.type, "parameters": parameters, "sizes": value.sizes}

    def _module(self, value: Any, depth: int) -> Any:
        state = {name: _from_tensor(tensor) for name, tensor in value.named_parameters()}
        declared = {n: getattr(value, n, None) for n in ("in_features", "out_features")}
        sizes = {n: int(size) for n, size in declared.items() if isinstance(size, int)}
        return self._state(ModuleState(type(value).__name__[:80], state, sizes), depth)

    def _instance(self, value: Any, depth: int) -> Any:
        if isinstance(value, type) or callable(value) or type(value).__module__ == "builtins":
            return _other(value)
        # Whether the other members are among a member's names differs between Pythons.
        listed = ("name", "value") if isinstance(value, enum.Enum) else dir(value)
        names = [name for name in listed if not name.startswith("_")][:MAX_FIELDS]
        seen = {name: getattr(value, name, None) for name in names}
        fields = {name: item for name, item in seen.items() if not callable(item)}
        return self._structure(value, fields, depth) if fields else _other(value)

    def _structure(
        self, value: Any, fields: dict, depth: int, items: tuple | None = None, type_name: str | None = None
    ) -> Any:
        return {
            "$": "structure",
            "type": (type_name or type(value).__name__)[:80],
            "fields": {str(name)[:80]: self.tree(item, depth) for name, item in fields.items()},
            "items": None if items is None else self._list(list(items), depth),
        }


_ENCODERS: list[tuple[Any, Any]] = [
    ((type(None), bool, str), _Encoder._plain),
    (int, _Encoder._int),
    (np.generic, _Encoder._scalar),
    (float, _Encoder._float),
    ((numbers.Real, Decimal), _Encoder._real),
    (Tensor, _Encoder._tensor),
    (Structure, _Encoder._again),
    (ModuleState, _Encoder._state),
    (Other, _Encoder._other),
    (np.ndarray, _Encoder._ndarray),
    (list, _Encoder._list),
    (tuple, _Encoder._tuple),
    (Mapping, _Encoder._mapping),
    ((bytes, bytearray, memoryview), lambda encoder, value, depth: _other(value)),
    (Sequence, _Encoder._sequence),
]
_BY_TYPE = {
    kind: next(encode for kinds, encode in _ENCODERS if issubclass(kind, kinds))
    for kind in (str, int, float, bool, type(None), dict, list, tuple, np.ndarray, Tensor)
}
"""What most values are, told without asking a dozen times what else they might be."""


def _torch() -> Any:
    import sys

    return sys.modules.get("torch")


def _from_tensor(tensor: Any) -> np.ndarray:
    torch = _torch()
    plain = tensor.detach().to("cpu")
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if str(plain.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2"):
        plain = plain.to(torch.float32)
    return plain.resolve_conj().resolve_neg().contiguous().numpy()


def _other(value: Any, text: str | None = None) -> dict[str, Any]:
    if text is None:
        try:
            text = repr(value)[:200]
        except Exception:  # a student's __repr__ may do anything
            text = "no description"
    return {"$": "other", "type": type(value).__name__[:80], "text": text}


_WRITER = json.JSONEncoder(allow_nan=False)


def encode(tree: Any) -> bytes:
    """One frame that holds `tree`."""
    encoder = _Encoder()
    header = _WRITER.encode(encoder.tree(tree)).encode()
    payload = save(encoder.arrays) if encoder.arrays else b""
    if len(header) > MAX_HEADER or _marks(header) > MAX_MARKS:
        raise BadFrame(f"the value takes {len(header)} bytes besides its arrays; at most {MAX_HEADER} can be sent")
    return LENGTHS.pack(len(header), len(payload)) + header + payload


# --- decoding ---------------------------------------------------------------------------------------------------------


def check_lengths(prefix: bytes) -> tuple[int, int]:
    """The header's and the payload's length, from the first 12 bytes, before either is read."""
    header, payload = LENGTHS.unpack(prefix)
    if header > MAX_HEADER or payload > MAX_PAYLOAD:
        raise BadFrame(f"a frame of {header} + {payload} bytes; at most {MAX_HEADER} + {MAX_PAYLOAD} are read")
    return header, payload


def decode(header: bytes, payload: bytes, tensors: bool = False) -> Any:
    """The tree in a frame, as plain Python values and plain arrays; as torch tensors where marked and asked for."""
    if _marks(header) > MAX_MARKS:
        raise BadFrame("the header has too many parts")
    try:
        tree = _READER.decode(header.decode())
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"the header is no JSON: {type(error).__name__}") from None
    arrays = _arrays(payload)
    value = _Decoder(arrays, tensors).tree(tree)
    if arrays:
        raise BadFrame("the payload holds arrays that the header does not name")
    return value


def _marks(header: bytes) -> int:
    return header.count(b",") + header.count(b"[") + header.count(b"{")


def _no_constants(text: str) -> None:
    raise ValueError(text)


_READER = json.JSONDecoder(parse_constant=_no_constants)


def _arrays(payload: bytes) -> dict[str, np.ndarray]:
    if not payload:
        return {}
    if int.from_bytes(payload[:8], "little") > MAX_TABLE:
        raise BadFrame("the payload names too many arrays")
    try:
        arrays = load(bytes(payload))
    except Exception as error:  # safetensors raises its own kinds, KeyError and ValueError
        raise BadFrame(f"the payload is no safetensors: {type(error).__name__}") from None
    for array in arrays.values():
        # Not isinstance: a subclass may redefine == and so agree with anything.
        if type(array) is not np.ndarray or not _carried(array.dtype):
            raise BadFrame("the payload holds an array of another kind")
    return arrays


_AS_THEY_ARE = frozenset([int, float, bool, type(None)])


class _Decoder:
    def __init__(self, arrays: dict[str, np.ndarray], tensors: bool) -> None:
        self.arrays, self.tensors = arrays, tensors
        self.listed = self.longest = self.keys = self.nodes = 0

    def tree(self, node: Any, depth: int = 0) -> Any:
        if depth > 4 * MAX_DEPTH:
            raise BadFrame("nested too deep")
        if isinstance(node, list):
            return self._list(node, depth + 1)
        if isinstance(node, dict):
            return self._tagged(node, depth + 1)
        return _text(node) if isinstance(node, str) else node

    def _count(self, nodes: int) -> None:
        """Every part is looked at many times, and only an honest sender counts them."""
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise BadFrame(f"more than {MAX_NODES} parts")

    def _list(self, items: Any, depth: int) -> list:
        if type(items) is not list:
            raise BadFrame("no list where one belongs")
        self._count(len(items))
        values = [item if type(item) in _AS_THEY_ARE else self.tree(item, depth) for item in items]
        # Whoever makes an array of a list of texts pays for each as for the longest: 4 MB could ask for 40 GB.
        self.listed += len(values)
        self.longest = max([self.longest, *(len(value) for value in values if isinstance(value, str))])
        if self.listed * self.longest > MAX_TEXT_CELLS:
            raise BadFrame("lists of texts that are too long")
        return values

    def _tagged(self, node: dict, depth: int) -> Any:
        tag = node.get("$")
        decode = _DECODERS.get(tag) if isinstance(tag, str) else None
        if decode is None:
            raise BadFrame("an unknown tag")
        try:
            return decode(self, node, depth)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, BadFrame):
                raise
            raise BadFrame(f"a broken {tag}: {type(error).__name__}") from None

    def _array(self, node: dict, depth: int) -> np.ndarray:
        return self.arrays.pop(node["name"])

    def _tensor(self, node: dict, depth: int) -> Any:
        array = np.array(self.arrays.pop(node["name"]))
        return _torch_module().from_numpy(array) if self.tensors else array

    def _tuple(self, node: dict, depth: int) -> tuple:
        return tuple(self._list(node["items"], depth))

    def _map(self, node: dict, depth: int) -> dict:
        self._count(len(node["items"]))
        return {self._key(key, depth): self.tree(value, depth) for key, value in node["items"]}

    def _key(self, node: Any, depth: int) -> Any:
        if type(node) is str:
            return _text(node)
        self.keys += 1
        if self.keys > MAX_KEYS:
            raise BadFrame("too many keys that are no texts")
        return self.tree(node, depth)

    def _int(self, node: dict, depth: int) -> int:
        return int(_checked(node["value"], str))

    def _float(self, node: dict, depth: int) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[node["value"]]

    def _structure(self, node: dict, depth: int) -> Structure:
        self._count(len(node["fields"]))
        fields = {_text(name)[:80]: self.tree(value, depth) for name, value in node["fields"].items()}
        items = None if node["items"] is None else tuple(self._list(node["items"], depth))
        return Structure(_name(node), fields, items)

    def _module(self, node: dict, depth: int) -> ModuleState:
        parameters = {_text(name): self.tree(value, depth) for name, value in node["parameters"].items()}
        arrays = {name: value for name, value in parameters.items() if isinstance(value, np.ndarray)}
        sizes = {_text(name)[:80]: _checked(size, int) for name, size in node["sizes"].items()}
        return ModuleState(_name(node), arrays, sizes)

    def _other(self, node: dict, depth: int) -> Other:
        return Other(_name(node), _text(_checked(node["text"], str))[:400])


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise BadFrame(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _name(node: dict) -> str:
    return _text(_checked(node["type"], str))[:80]


def _text(text: str) -> str:
    """Without half characters, which JSON can spell and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_DECODERS = {
    "array": _Decoder._array,
    "tensor": _Decoder._tensor,
    "tuple": _Decoder._tuple,
    "map": _Decoder._map,
    "int": _Decoder._int,
    "float": _Decoder._float,
    "structure": _Decoder._structure,
    "module": _Decoder._module,
    "other": _Decoder._other,
}


def _torch_module() -> Any:
    import torch

    return torch
