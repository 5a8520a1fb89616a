"""Run notebooks with nbclient, each in a kernel of its own: `python -m bench.cold NOTEBOOK…`."""

from __future__ import annotations

import sys

import nbformat
from nbclient import NotebookClient

for path in sys.argv[1:]:
    NotebookClient(nbformat.read(path, as_version=4), kernel_name="python3").execute()
