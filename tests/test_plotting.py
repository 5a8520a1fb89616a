"""Pictures: drawn whole, readable on any background, and never the only place where a fact stands."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from course import plotting

WORDS = ["the", "cat", "sat"]
WEIGHTS = np.array([[1 / 3, 1 / 3, 1 / 3], [0.909, 0.045, 0.045], [0.045, 0.909, 0.045]])
LONG = ["one-hot share", "mean entropy", "median gradient"]

PICTURES = {
    "heatmap": lambda: plotting.heatmap(WEIGHTS, rows=WORDS, columns=WORDS, title="Weights"),
    "eight-by-eight": lambda: plotting.heatmap(np.eye(8), rows=range(8), columns=range(8), title="Eight tokens"),
    "long-columns": lambda: plotting.heatmap(
        np.eye(2, 4), rows=["divided by √512", "not divided"], columns=["standard deviation", *LONG], title="Statistics"
    ),
    "wide-columns": lambda: plotting.heatmap(
        np.eye(2, 3), rows=["one", "two"], columns=["determiner", "animal", "median"], title="Three"
    ),
    "large-heatmap": lambda: plotting.heatmap(np.eye(40), rows=range(40), columns=range(40), title="Many tokens"),
    "bars": lambda: plotting.bars([0.886, 0.016, 0.098], labels=WORDS, title="One query", ylabel="weight"),
    "eight-bars": lambda: plotting.bars(
        np.linspace(0, 0.5, 8), labels=["sweet", "salty", "cinnamon", "garlic", *"abcd"], title="Spices"
    ),
    "beside": lambda: plotting.beside(
        [0.5, 1, 4, 1e308], [0.6, -0.19, 0, 46.4], labels=[*LONG, "gradient ratio"], title="Before and after"
    ),
    "lines": lambda: plotting.lines(
        range(1, 6), {"scaled": np.ones(5), "unscaled": np.exp(range(5))}, title="Norms", xlabel="T", ylabel="norm"
    ),
    "flow": lambda: plotting.flow(weights=WEIGHTS, title="the cat sat"),
}


@pytest.fixture
def shown(monkeypatch):
    """The figures and tables that a test drew, in order."""
    pictures = []
    monkeypatch.setattr(plotting, "show", lambda draw, table: pictures.append((draw(), table)))
    return pictures


def words(figure):
    """Every text in a figure that is drawn and not empty."""
    figure.draw_without_rendering()
    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


def luminance(colour):
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], channels))


def contrast(one, other):
    """Contrast ratio as WCAG 2.2 defines it; 4.5 is enough for text."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("picture", PICTURES)
def test_picture_brings_its_own_opaque_background(picture, shown):
    """A picture is the same in a light and in a dark notebook, since nothing of the page shines through."""
    PICTURES[picture]()
    image = Image.open(io.BytesIO(plotting.png(shown[0][0])))
    assert image.convert("RGBA").getchannel("A").getextrema() == (255, 255)


@pytest.mark.parametrize("picture", PICTURES)
def test_every_word_is_dark_on_light(picture, shown):
    """Each text keeps a contrast of 4.5 or more, on the paper and on the darkest cell of a heatmap."""
    PICTURES[picture]()
    darkest_cell = plotting.BLUES(1.0)[:3]
    for text in words(shown[0][0]):
        assert contrast(text.get_color(), plotting.PAPER) >= 4.5, text.get_text()
        assert contrast(text.get_color(), darkest_cell) >= 4.5, text.get_text()


@pytest.mark.parametrize("picture", PICTURES)
def test_no_word_leaves_the_picture(picture, shown):
    """Every text is inside the figure, so nothing is cut off."""
    PICTURES[picture]()
    figure = shown[0][0]
    figure.draw_without_rendering()
    ink = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(ink.x0, ink.y0) >= 0
    assert ink.x1 <= width
    assert ink.y1 <= height


@pytest.mark.parametrize("picture", PICTURES)
def test_words_stay_large_enough_on_a_narrow_screen(picture, shown):
    """At 360 pixels across, text is still 9 pixels high or more."""
    PICTURES[picture]()
    figure = shown[0][0]
    shrunk = min(1.0, 360 / (figure.get_size_inches()[0] * 100))
    # A point is 1/72 inch, and show() displays a figure at 100 pixels per inch.
    assert min(text.get_fontsize() for text in words(figure)) * 100 / 72 * shrunk >= 9


@pytest.mark.parametrize("picture", PICTURES)
def test_picture_leaves_nothing_behind(picture, shown):
    """Figures are made without pyplot, so a long session does not pile them up."""
    import matplotlib.pyplot

    PICTURES[picture]()
    assert isinstance(shown[0][0], Figure)
    assert matplotlib.pyplot.get_fignums() == []


def test_heatmap_holds_the_numbers_in_its_cells(shown):
    """Colour only repeats what the numbers say; columns are named above, rows at the left."""
    plotting.heatmap(WEIGHTS, rows=["q0", "q1", "q2"], columns=["k0", "k1", "k2"], title="Weights", digits=2)
    drawn = [text.get_text() for text in words(shown[0][0])]
    assert [drawn.count(number) for number in ("0.33", "0.91", "0.04")] == [3, 2, 4]
    assert {"q0", "q1", "q2", "k0", "k1", "k2", "Weights"} <= set(drawn)


@pytest.mark.parametrize("picture", ["heatmap", "eight-by-eight", "long-columns", "wide-columns"])
def test_names_of_columns_do_not_touch(picture, shown):
    """Column names have room beside each other, or are turned, so each can be read."""
    PICTURES[picture]()
    figure = shown[0][0]
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    apart = all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert apart or {label.get_rotation() for label in labels} == {40.0}


def test_nothing_is_drawn_where_nobody_looks(monkeypatch, capsys):
    """While a notebook is graded only the table is made: pictures would take most of a hand-in's time."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    monkeypatch.setattr(plotting, "Figure", None)
    PICTURES["flow"]()
    assert capsys.readouterr().out.startswith("the cat sat\n")


def test_heatmap_prints_its_table(capsys):
    """The same numbers are there as text, for whoever cannot see the picture."""
    plotting.heatmap(WEIGHTS, rows=WORDS, columns=WORDS, title="Weights")
    assert capsys.readouterr().out == (
        "Weights\n"
        "       the    cat    sat\n"
        "the  0.333  0.333  0.333\n"
        "cat  0.909  0.045  0.045\n"
        "sat  0.045  0.909  0.045\n"
    )


def test_heatmap_shows_masked_scores_as_infinite(shown):
    """−∞ is written in its cell and does not spoil the colours of the others."""
    plotting.heatmap([[0.7, -np.inf], [0.0, 0.7]], rows=["q0", "q1"], columns=["k0", "k1"], title="Scores", digits=1)
    assert "−∞" in [text.get_text() for text in words(shown[0][0])]
    assert "q0  0.7   −∞" in shown[0][1]


def test_rounded_negative_zero_has_no_sign(shown):
    """A weight of −0.0001 is shown as 0, not as −0."""
    plotting.heatmap([[-0.0001, 1.0]], rows=["a"], columns=["b", "c"], title="Rounded", digits=2)
    assert "a  0.00  1.00" in shown[0][1]


@pytest.mark.parametrize("value", [0.0, 0.5, np.nan, -np.inf])
def test_heatmap_of_equal_entries(value, shown):
    """A matrix without any contrast is drawn like any other."""
    plotting.heatmap(np.full((2, 2), value), rows="ab", columns="cd", title="Flat")
    assert len(shown) == 1


def test_large_heatmap_leaves_numbers_to_its_scale(shown):
    """A matrix too large for numbers has a scale beside it, and a table of a sample with the range of the rest."""
    plotting.heatmap(np.eye(64), rows=range(64), columns=range(64), title="Many tokens")
    figure, table = shown[0]
    assert len(figure.axes) == 2
    assert len(table.splitlines()) == 11
    assert table.endswith("… 4032 more entries, all between 0 and 1")


def test_heatmap_accepts_tensors_with_gradients(shown):
    """A weight matrix straight from a model can be looked at."""
    plotting.heatmap(torch.eye(2, requires_grad=True), rows="ab", columns="cd", title="Weights")
    assert "a  1.000  0.000" in shown[0][1]


def test_heatmap_says_which_names_do_not_fit():
    """Names and shape that disagree are a mistake in the call, and both are in the message."""
    with pytest.raises(ValueError, match=r"2 rows and 3 columns are named, but the matrix has the shape \(3, 3\)"):
        plotting.heatmap(WEIGHTS, rows=["the", "cat"], columns=WORDS, title="Weights")


def test_bars_carry_their_numbers(shown):
    """Each bar has its number on top and its name below, and the table repeats both."""
    PICTURES["bars"]()
    figure, table = shown[0]
    assert {"0.886", "0.016", "0.098", *WORDS, "weight"} <= {text.get_text() for text in words(figure)}
    assert table.splitlines()[:3] == ["One query", "     weight", "the   0.886"]


def test_long_names_of_bars_do_not_touch(shown):
    """Names that would run into each other are turned, so each can be read."""
    PICTURES["eight-bars"]()
    figure = shown[0][0]
    figure.draw_without_rendering()
    names = figure.axes[0].get_xticklabels()
    assert {label.get_rotation() for label in names} == {40.0}


def test_lines_differ_in_dash_and_marker(shown):
    """Two series can be told apart without colour, and the legend names them."""
    PICTURES["lines"]()
    figure, table = shown[0]
    drawn = figure.axes[0].get_lines()
    assert len({(line.get_linestyle(), line.get_marker()) for line in drawn}) == 2
    assert {"scaled", "unscaled"} <= {text.get_text() for text in words(figure)}
    assert table.splitlines()[0] == "Norms (T | norm)"
    assert table.splitlines()[2].split() == ["1", "1", "1"]


@pytest.mark.parametrize(("logarithmic", "scale"), [(True, "log"), (False, "linear")])
def test_lines_scale(logarithmic, scale, shown):
    """`logy` decides how the vertical axis counts."""
    plotting.lines([1, 2], {"a": [1, 100]}, title="t", xlabel="x", ylabel="y", logy=logarithmic)
    assert shown[0][0].axes[0].get_yscale() == scale


def test_flow_names_each_stage_and_its_shape(shown):
    """Without numbers the diagram shows the way from X to the output with the shape of each stage."""
    plotting.flow()
    figure, table = shown[0]
    drawn = {text.get_text() for text in words(figure)}
    assert {"Q = X W_Q", "K = X W_K", "V = X W_V", "scores = Q Kᵀ / √d_k", "weights = softmax by row"} <= drawn
    assert table.splitlines()[-1].split() == ["output", "=", "weights", "V", "(T,", "d_v)"]


def test_flow_of_a_head_that_divides_by_nothing(shown):
    """Unscaled scores are not called scaled, neither in the picture nor in its table."""
    plotting.flow(divisor="")
    figure, table = shown[0]
    assert "scores = Q Kᵀ" in {text.get_text() for text in words(figure)}
    assert "√d_k" not in table


def test_flow_shows_small_matrices_and_the_shape_of_large_ones(shown):
    """Numbers stand in a box as long as they can be read there."""
    plotting.flow(X=np.zeros((5, 8)), weights=WEIGHTS, Q=(3, 2))
    drawn = [text.get_text() for text in words(shown[0][0])]
    assert "(5, 8)" in drawn
    assert "(3, 2)" in drawn
    assert "0.33 0.33 0.33\n0.91 0.04 0.04\n0.04 0.91 0.04" in drawn


def test_picture_is_displayed_in_a_notebook(capsys, monkeypatch):
    """Inside IPython the figure is displayed as a PNG whose description is its table; the table is printed too."""
    displayed = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    monkeypatch.setattr("IPython.core.getipython.get_ipython", InteractiveShell)
    PICTURES["heatmap"]()
    data, metadata = displayed[0]._repr_mimebundle_()
    assert "image/png" in data
    assert metadata["image/png"]["alt"].startswith("Weights\n")
    assert capsys.readouterr().out.startswith("Weights\n")
