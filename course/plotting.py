"""Pictures with their numbers: each function draws with matplotlib and prints the same facts as a small text table.

Nothing is told by colour alone: cells and bars carry their numbers, lines differ in dash and in marker.
Figures bring their own light background, so that they read the same in a light and in a dark notebook.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

PAPER, INK, FAINT = "#fbfaf6", "#1b1b1b", "#6b6b6b"
# Okabe and Ito's palette without its yellow, which vanishes on a light ground.
COLOURS = ("#0072b2", "#d55e00", "#007a5a", "#a0427a", "#5c5c5c")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v")
# Only the lighter part of the map, so that dark ink is readable on every cell.
BLUES = ListedColormap(colormaps["Blues"](np.linspace(0.0, 0.5, 128)))
NUMBERED = 10
"""A matrix with more rows or columns than this is drawn without numbers, and its table shows the corner only."""
BESIDE = ("predicted", "measured")
WIDEST = 5.5
"""Inches. A wider picture is shrunk on a narrow screen until its words are hard to read."""


def heatmap(matrix: Any, *, rows: Sequence[Any], columns: Sequence[Any], title: str, digits: int = 3) -> None:
    """Draw `matrix` as a grid whose cells hold their numbers; `rows` and `columns` name its axes entry by entry.

    Raises ValueError where the names do not fit the shape.
    """
    grid = _matrix(matrix, rows, columns)
    show(lambda: _heatmap(grid, rows, columns, title, digits), _table(grid, rows, columns, digits, title))


def _heatmap(grid: np.ndarray, rows: Sequence[Any], columns: Sequence[Any], title: str, digits: int) -> Figure:
    numbered = max(grid.shape) <= NUMBERED
    longest = max(len(_number(value, digits)) for value in grid.flat) if numbered else 0
    beside, above = _longest(rows), _longest(columns)
    turned = numbered and _width(beside, grid.shape[1], max(longest, above + 1)) > WIDEST
    width = _width(beside, grid.shape[1], longest if turned else max(longest, above + 1)) if numbered else 4.8
    height = 1.1 + 0.48 * (grid.shape[0] if numbered else 6) + (0.055 * above if turned else 0)
    axes = _axes(min(max(3.6, width), WIDEST), height, title)
    _cells(axes, grid, digits if numbered else None)
    _ticks(axes, rows, columns)
    if turned:
        axes.tick_params(axis="x", labelrotation=40)
        for label in axes.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
    return _figure(axes)


def bars(values: Any, *, labels: Sequence[Any], title: str, ylabel: str = "") -> None:
    """Draw one bar per value with its number on top; raises ValueError where `labels` do not fit."""
    heights = _array(values).ravel()
    grid = _matrix(heights[:, None], labels, [ylabel or "value"])
    show(lambda: _bars(heights, labels, title, ylabel), _table(grid, labels, [ylabel or "value"], 3, title))


def _bars(heights: np.ndarray, labels: Sequence[Any], title: str, ylabel: str) -> Figure:
    axes = _axes(max(3.6, 0.9 + 0.52 * len(heights)), 3.1, title)
    drawn = axes.bar(np.arange(len(heights)), heights, color=COLOURS[0], edgecolor=INK, width=0.65)
    axes.bar_label(drawn, labels=[f"{height:.3g}" for height in heights], padding=2, color=INK, fontsize=10)
    axes.set_xticks(np.arange(len(heights)), [str(label) for label in labels])
    if max(len(str(label)) for label in labels) * len(heights) > 36:
        axes.tick_params(axis="x", rotation=40)
    axes.set_ylabel(ylabel)
    axes.margins(y=0.15)
    return _figure(axes)


def beside(predicted: Any, measured: Any, *, labels: Sequence[Any], title: str) -> None:
    """Draw what was predicted above what was measured, a pair of bars for each label, on a scale of its own.

    Raises ValueError where `labels` do not fit.
    """
    grid = _matrix(np.stack([_array(predicted).ravel(), _array(measured).ravel()]), BESIDE, labels)
    show(lambda: _beside(grid, labels, title), _table(grid.T, labels, BESIDE, None, title))


def _beside(grid: np.ndarray, labels: Sequence[Any], title: str) -> Figure:
    figure = _sheet(4.8, 0.6 + 0.95 * len(labels))
    figure.suptitle(title, color=INK, fontsize=11, x=0.03, ha="left", wrap=True)
    for axes, label, pair in zip(figure.subplots(len(labels), squeeze=False).ravel(), labels, grid.T, strict=True):
        _dress(axes, str(label))
        # Relative to the larger, so that no number is too large to be drawn.
        drawn = axes.barh(
            BESIDE, pair / (np.nanmax(np.abs(pair), initial=0.0) or 1.0), color=COLOURS[:2], edgecolor=INK
        )
        axes.bar_label(drawn, labels=[_number(value, None) for value in pair], padding=4, color=INK, fontsize=10)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
    return figure


def lines(x: Any, series: Mapping[str, Any], *, title: str, xlabel: str, ylabel: str, logy: bool = False) -> None:
    """Draw each of `series` over `x`, told apart by dash and marker; raises ValueError where lengths differ."""
    at = _array(x).ravel()
    grid = _matrix(np.column_stack([_array(values).ravel() for values in series.values()]), list(at), list(series))
    table = _table(grid, [f"{value:.6g}" for value in at], list(series), None, f"{title} ({xlabel} | {ylabel})")
    show(lambda: _lines(at, series, title, xlabel, ylabel, logy), table)


def _lines(at: np.ndarray, series: Mapping[str, Any], title: str, xlabel: str, ylabel: str, logy: bool) -> Figure:
    axes = _axes(4.8, 3.4, title)
    for (name, values), colour, dash, marker in zip(
        series.items(), cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False
    ):
        every = max(1, len(at) // 10)
        axes.plot(at, _array(values), color=colour, linestyle=dash, marker=marker, markevery=every, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log" if logy else "linear")
    axes.grid(color="#d8d5cc", linewidth=0.6)
    axes.legend(facecolor=PAPER, edgecolor=FAINT, labelcolor=INK, handlelength=3.5)
    return _figure(axes)


def flow(
    *,
    X: Any = "(T, d)",
    Q: Any = "(T, d_k)",
    K: Any = "(T, d_k)",
    V: Any = "(T, d_v)",
    scores: Any = "(T, T)",
    weights: Any = "(T, T)",
    output: Any = "(T, d_v)",
    title: str = "One attention head",
    digits: int = 2,
    divisor: str = "√d_k",
) -> None:
    """Draw the way from X to the output; a stage is a text, a shape as a tuple, or a matrix.

    `divisor` is what the scores are divided by; where it is empty, by nothing. A matrix of at most four rows and
    columns is shown with its numbers, a larger one by its shape.
    """
    stages = {"X": X, "Q": Q, "K": K, "V": V, "scores": scores, "weights": weights, "output": output}
    show(lambda: _flow(stages, title, digits, divisor), _flow_table(stages, digits, title, divisor))


def _flow(stages: Mapping[str, Any], title: str, digits: int, divisor: str) -> Figure:
    axes = _axes(4.5, 7.0, title)
    axes.set(xlim=(0, 10), ylim=(-0.2, 14.1))
    axes.axis("off")
    for name, stage in stages.items():
        _box(axes, name, _text(stage, digits), _caption(name, divisor))
    for start, end, bend in ARROWS:
        axes.annotate("", xy=end, xytext=start, arrowprops=_arrow(bend))
    return _figure(axes)


def show(draw: Callable[[], Figure], table: str) -> None:
    """Display what `draw` makes where there is a notebook to display it in, and print `table`.

    While nbgrader autogrades (it says so in NBGRADER_EXECUTION), nobody looks, so nothing is drawn: a picture takes
    longer than everything else in its cell, and the table is enough.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import Image, display

    if get_ipython() is not None and os.environ.get("NBGRADER_EXECUTION") != "autograde":
        figure = draw()
        width = int(figure.get_size_inches()[0] * 100)
        picture = Image(png(figure), format="png", width=width, alt=table)
        display(picture)
    print(table)


def png(figure: Figure, dpi: int = 200) -> bytes:
    """The figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


# --- the parts of a picture -------------------------------------------------------------------------------------------

BOXES = {
    "X": (5.0, 12.9, "X, one row per token"),
    "Q": (1.7, 9.9, "Q = X W_Q"),
    "K": (5.0, 9.9, "K = X W_K"),
    "V": (8.3, 9.9, "V = X W_V"),
    "scores": (3.35, 6.9, "scores = Q Kᵀ"),
    "weights": (3.35, 3.9, "weights = softmax by row"),
    "output": (5.0, 0.95, "output = weights V"),
}
"""Centre and caption of each stage."""

ARROWS = (
    ((4.3, 11.85), (2.0, 11.0), 0),
    ((5.0, 11.85), (5.0, 11.0), 0),
    ((5.7, 11.85), (8.0, 11.0), 0),
    ((1.9, 8.85), (2.9, 8.0), 0),
    ((4.8, 8.85), (3.8, 8.0), 0),
    ((3.35, 5.85), (3.35, 5.0), 0),
    ((3.35, 2.85), (4.5, 2.0), 0),
    ((8.3, 8.85), (5.6, 2.0), -0.25),
)


def _caption(name: str, divisor: str) -> str:
    return BOXES[name][2] + (f" / {divisor}" if name == "scores" and divisor else "")


def _box(axes: Axes, name: str, text: str, caption: str) -> None:
    x, y, _ = BOXES[name]
    half = 1.5 if name in "QKV" else 2.8
    outline = FancyBboxPatch(
        (x - half, y - 0.95), 2 * half, 1.9, boxstyle="round,pad=0.05", facecolor="white", edgecolor=INK
    )
    axes.add_patch(outline)
    axes.text(x, y + 0.62, caption, ha="center", va="center", color=INK, fontsize=10, fontweight="bold")
    axes.text(x, y - 0.25, text, ha="center", va="center", color=INK, fontsize=10, family="monospace")


def _arrow(bend: float) -> dict[str, Any]:
    return {"arrowstyle": "-|>", "color": INK, "linewidth": 1.4, "connectionstyle": f"arc3,rad={bend}"}


def _axes(width: float, height: float, title: str) -> Axes:
    axes = _sheet(width, height).add_subplot()
    _dress(axes, title)
    return axes


def _sheet(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr, call-arg]
    return figure


def _dress(axes: Axes, title: str) -> None:
    axes.set_facecolor(PAPER)
    axes.set_title(title, color=INK, fontsize=11, loc="left", wrap=True)
    axes.tick_params(colors=INK, labelsize=10)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    for side, spine in axes.spines.items():
        spine.set_color(FAINT)
        spine.set_visible(side in ("left", "bottom"))


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return figure


def _cells(axes: Axes, grid: np.ndarray, digits: int | None) -> None:
    shown = np.ma.masked_invalid(grid)
    low, high = (float(shown.min()), float(shown.max())) if shown.count() else (0.0, 1.0)
    image = axes.imshow(shown, cmap=BLUES, vmin=low, vmax=high if high > low else low + 1, aspect="auto")
    if digits is None:
        _figure(axes).colorbar(image, ax=axes).ax.tick_params(colors=INK, labelsize=10)
        return
    for (row, column), value in np.ndenumerate(grid):
        axes.text(column, row, _number(value, digits), ha="center", va="center", color=INK, fontsize=10)


def _longest(names: Sequence[Any]) -> int:
    return max(len(str(name)) for name in names)


def _width(beside: int, columns: int, letters: int) -> float:
    """Inches for row names of `beside` letters and for `columns` columns of `letters` each."""
    return 0.55 + 0.085 * beside + columns * (0.1 + 0.088 * letters)


def _ticks(axes: Axes, rows: Sequence[Any], columns: Sequence[Any]) -> None:
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        step = 1 if len(names) <= NUMBERED else int(np.ceil(len(names) / 8))
        axis.set_ticks(np.arange(0, len(names), step), [str(name) for name in list(names)[::step]])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


# --- the numbers beside it --------------------------------------------------------------------------------------------


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=float)


def _matrix(values: Any, rows: Sequence[Any], columns: Sequence[Any]) -> np.ndarray:
    grid = _array(values)
    if grid.shape != (len(rows), len(columns)):
        named = f"{len(rows)} rows and {len(columns)} columns are named"
        raise ValueError(f"{named}, but the matrix has the shape {grid.shape}")
    return grid


def _number(value: float, digits: int | None) -> str:
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "−∞"}.get(value, "nan")
    # Adding zero turns a rounded −0 into 0.
    return f"{value:.4g}" if digits is None else f"{round(value, digits) + 0.0:.{digits}f}"


def _table(grid: np.ndarray, rows: Sequence[Any], columns: Sequence[Any], digits: int | None, title: str) -> str:
    kept_rows, kept_columns = _kept(len(rows)), _kept(len(columns))
    header = ["", *(str(columns[j]) for j in kept_columns)]
    body = [[str(rows[i]), *(_number(grid[i, j], digits) for j in kept_columns)] for i in kept_rows]
    widths = [max(len(line[k]) for line in [header, *body]) for k in range(len(header))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [header, *body]]
    left_out = grid.size - len(kept_rows) * len(kept_columns)
    note = [f"… {left_out} more entries, all between {grid.min():.4g} and {grid.max():.4g}"] if left_out else []
    return "\n".join([title, *text, *note])


def _kept(count: int) -> list[int]:
    return list(range(count)) if count <= NUMBERED else [int(i) for i in np.linspace(0, count - 1, 8).round()]


def _text(stage: Any, digits: int) -> str:
    if isinstance(stage, str):
        return stage
    if isinstance(stage, tuple):
        return "(" + ", ".join(str(size) for size in stage) + ")"
    grid = np.atleast_2d(_array(stage))
    if grid.ndim > 2 or max(grid.shape) > 4:
        return "(" + ", ".join(str(size) for size in grid.shape) + ")"
    cells = [[_number(value, digits) for value in row] for row in grid]
    width = max(len(cell) for row in cells for cell in row)
    return "\n".join(" ".join(cell.rjust(width) for cell in row) for row in cells)


def _flow_table(stages: Mapping[str, Any], digits: int, title: str, divisor: str) -> str:
    parts = [title]
    for name, stage in stages.items():
        first, *rest = _text(stage, digits).splitlines()
        parts += [f"{_caption(name, divisor):<25} {first}", *(" " * 26 + line for line in rest)]
    return "\n".join(parts)
