"""Fake students: one small generator for each way to hand in, with the outcomes that are right for it beside it.

Ids A… and h…, n… are those of the collected bug reports and attacks; ids C… are our own of the same kinds.
"""

from submissions import cells, cheating, files, formats, running
from submissions.casebook import CASES, Case

__all__ = ["CASES", "Case", "cells", "cheating", "files", "formats", "running"]
