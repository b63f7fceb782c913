"""How text takes so many cells of a terminal, once it is clean (``model.values.printable``)."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Exactly so many cells; what is cut ends with an ellipsis."""
    if width <= 0:
        return ""
    if (length := cell_len(text)) > width:
        return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"
    fill = " " * (width - length)
    return fill + text if right else text + fill


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """``fit``, and exactly so wide where the cut ended in the middle of a wide character."""
    return set_cell_size(fit(text, width, right=right), width)


def middle(text: str, width: int) -> str:
    """At most so many cells; a name that is cut keeps its end, by which it is told from others."""
    if cell_len(text) <= width or width < 8:
        return text
    end = text[-6:]
    return fit(text, width - cell_len(end)) + end
