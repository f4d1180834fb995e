"""One look for every picture: colours by role, sizes by column, files with reproducible bytes.

The palette is Okabe and Ito's (jfly.uni-koeln.de/color), told apart by all common kinds of colour
vision. No role relies on colour alone: a line style, a mark or a label repeats it.
Figures are made with `matplotlib.figure.Figure`, never pyplot: no window, no global state.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from causalarms.arrays import FloatArray
from causalarms.errors import DataError
from causalarms.files import Mark, printable, write_output

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#6E6E6E"
PALE_GREY = "#EDEDED"
WHITE = "#FFFFFF"

POSITIVE = BLUE
NEGATIVE = VERMILLION
FOUND = BLACK
MISSED = ORANGE
EXTRA = PURPLE
UNKNOWN = GREY
ABSENT, ABSENT_TEXT = "#CFCFCF", "#9A9A9A"  # there is no such mechanism
NODE = PALE_GREY
REWARD = YELLOW
FACTOR, CONTEXT = "#CFE6F7", "#D3EEE2"  # pale sky blue and green; shapes tell them apart, too

ONE_COLUMN = 3.5  # inches: a column of IEEE's two-column layout
TWO_COLUMNS = 7.16

MOST_PANELS = 4  # regimes; more do not fit a page, a table holds them

POINTS_PER_INCH = 72.0
TEXT_SIZE = 8.0  # points
SMALL_TEXT_SIZE = 6.5
TITLE_SIZE = TEXT_SIZE + 1

SERIES = cycler(
    color=[BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK],
    linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1))],
)

_SETTINGS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same glyphs on every machine
    "font.size": TEXT_SIZE,
    "axes.titlesize": TEXT_SIZE,
    "axes.labelsize": TEXT_SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": SERIES,
    "xtick.labelsize": SMALL_TEXT_SIZE,
    "ytick.labelsize": SMALL_TEXT_SIZE,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": SMALL_TEXT_SIZE,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.5,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # real, searchable fonts; journals refuse type 3
    "svg.hashsalt": "causalarms",  # names inside the file, random without it
    "path.simplify": False,
}

# What would differ between two runs or two versions of matplotlib is left out of the file.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {},
    ".pdf": {"CreationDate": None, "Producer": None},
    ".svg": {"Date": None},
}
_MAKER = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}  # entry that names the maker


@contextmanager
def figure_style() -> Iterator[None]:
    """The package's settings inside the block, the caller's again after it."""
    with mpl.rc_context():
        mpl.rcdefaults()  # a user's matplotlibrc must not change the bytes
        mpl.rcParams.update(_SETTINGS)
        yield


@contextmanager
def one_panel(height: float, x: str, y: str) -> Iterator[tuple[Figure, Axes]]:
    """A picture of one column with one pair of axes; `x` and `y` say what they show."""
    with figure_style():
        figure = Figure(figsize=(ONE_COLUMN, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set(xlabel=x, ylabel=y)
        yield figure, axes


def draw_band(
    axes: Axes,
    at: Any,
    value: FloatArray,
    ends: Any,
    *,
    alpha: float = 0.15,
    blocks: bool = False,
    **line: Any,
) -> None:
    """A line with the interval around it in the same colour.

    at       where the points are, (n,)
    value    (n,)
    ends     of the intervals, (2, n); None: only the line
    alpha    how dense the interval is
    blocks   a value holds up to the next point
    line     matplotlib's settings of the line
    """
    (drawn,) = axes.plot(at, value, drawstyle="steps-post" if blocks else "default", **line)
    if ends is not None:
        low, high = ends
        axes.fill_between(
            at, low, high, color=drawn.get_color(), alpha=alpha, linewidth=0,
            step="post" if blocks else None,
        )  # fmt: skip


def write(
    axes: Axes, x: float, y: float, text: str, *, size: float = TEXT_SIZE, bold: bool = False,
    **how: Any,
) -> None:  # fmt: skip
    """Text that is never read as a formula: a name may hold a dollar sign."""
    weight = "bold" if bold else "normal"
    axes.text(x, y, text, fontsize=size, fontweight=weight, parse_math=False, **how)


def text_size(text: str, points: float, *, bold: bool = False) -> tuple[float, float]:
    """Width and height in inches."""
    font = FontProperties(size=points, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return width / POINTS_PER_INCH, points / POINTS_PER_INCH


def number(value: float) -> str:
    """Two or three digits.

    >>> number(-0.8765), number(0.0345), number(2.0), number(12.34), number(0.999)
    ('−0.88', '0.03', '2.0', '12.3', '1.0')
    """
    size = abs(value)
    if size < 0.095:
        digits = f"{value:.1g}"
    elif size < 0.995:
        digits = f"{value:.2f}"
    else:
        digits = f"{value:.1f}" if size < 9.95 else f"{value:.3g}"
    return digits.replace("-", "\u2212")


def shortened(name: str, longest: int) -> str:
    """A name as it is written into pictures, in at most `longest` letters."""
    name = printable(name)
    return name if len(name) <= longest else name[: longest - 1] + "\u2026"


def set_title(figure: Figure, title: str | None) -> None:
    """Above the whole picture, at a fixed distance from its upper edge."""
    if title:
        figure.suptitle(title, y=1 - 0.08 / figure.get_figheight(), va="top", fontsize=TITLE_SIZE)


def say_runs(figure: Figure, words: str) -> None:
    """Below the picture: how much it rests on."""
    figure.supxlabel(words, fontsize=SMALL_TEXT_SIZE, color=GREY)


def picture_mark(path: Path, made_by: str) -> Mark:
    """How a picture of a command is recognised, so that it may be written again."""
    if path.suffix.lower() == ".pdf":
        return Mark(f"`{made_by}`", b"%PDF", f"/Creator ({made_by})".encode())
    if path.suffix.lower() == ".svg":
        return Mark(f"`{made_by}`", b"<?xml", f"<dc:title>{made_by}</dc:title>".encode())
    return Mark(f"`{made_by}`", b"\x89PNG", f"Software\0{made_by}".encode())


def checked_ending(path: Path) -> str:
    """The ending of a picture's name; DataError if there is no such kind."""
    ending = path.suffix.lower()
    if ending not in _METADATA:
        raise DataError(
            f"{path.name}: unknown ending {path.suffix!r}; there are {', '.join(_METADATA)}"
        )
    return ending


def save_figure(
    figure: Figure,
    path: str | Path,
    *,
    made_by: str = "causalarms",
    inputs: Iterable[str | Path] = (),
    force: bool = False,
) -> Path:
    """Write a PNG, PDF or SVG, by the ending of the file's name: complete or not at all.

    figure    matplotlib's
    path      of the picture; the same figure gives the same bytes
    made_by   what the file names as its maker
    inputs    files it was made from, which it must not replace
    force     replace a file that somebody else made
    """
    path = Path(path)
    ending = checked_ending(path)
    # in memory first: a failure leaves the file that was there
    with io.BytesIO() as buffer, figure_style():
        metadata = _METADATA[ending] | {_MAKER[ending]: made_by}
        figure.savefig(buffer, format=ending[1:], metadata=metadata)
        content = buffer.getvalue()
    mark = picture_mark(path, made_by)
    return write_output(path, content, mark, inputs=inputs, force=force)
