"""The benchmark runs; what it measures is for `make bench` on an idle machine to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ("ratio_vs_stock_wall", "ratio_vs_nbclient_2proc", "overhead_per_handin_s", "cost_growth_200_over_20")


@pytest.mark.slow
def test_benchmark_ends_with_its_four_figures():
    """Each side does its work on a few hand-ins, and the last four lines are a name and a number each."""
    words = [sys.executable, "-m", "bench", "--quick"]
    root = Path(__file__).parents[1]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=600, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = dict(line.split() for line in done.stdout.splitlines()[-4:])
    assert tuple(figures) == NAMES
    assert all(float(value) == float(value) for value in figures.values())
    assert str(root) not in done.stdout
