"""Time a notebook's cells alone, with all that they import loaded: `python -m bench.floor NOTEBOOK TIMES`."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import sys
import time
from pathlib import Path

from bench.courses import SLUG
from bench.sides import cells
from graders.ahead import modules_for


def seconds(sources: list[str]) -> float:
    """How long `sources` run in a fork of this process."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, str(_run(sources)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as told:
        taken = float(told.read())
    os.wait()
    return taken


def _run(sources: list[str]) -> float:
    names: dict[str, object] = {"__name__": "__main__"}
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        for source in sources:
            exec(compile(source, "cell", "exec"), names)
    return time.perf_counter() - started


if __name__ == "__main__":
    for module in ("IPython.display", *modules_for(SLUG)):
        importlib.import_module(module)
    import torch

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    sources = cells(Path(sys.argv[1]))
    json.dump([seconds(sources) for _ in range(int(sys.argv[2]))], sys.stdout)
