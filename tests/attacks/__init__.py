"""Hand-ins that try to earn marks without an answer, or to hurt the grading: one module for each way to try."""

from attacks import (
    frames,
    gradebook,
    hand_ins,
    inputs,
    ipython,
    libraries,
    notebooks,
    objects,
    processes,
    resources,
    torch_library,
)
from attacks.casebook import ATTACKS, Attack

__all__ = [
    "ATTACKS",
    "Attack",
    "frames",
    "gradebook",
    "hand_ins",
    "inputs",
    "ipython",
    "libraries",
    "notebooks",
    "objects",
    "processes",
    "resources",
    "torch_library",
]
