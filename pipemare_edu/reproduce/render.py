"""Headings, paragraphs, lists, tables and figures, as Markdown and as HTML; rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import NamedTuple

from plotly.offline import get_plotlyjs

from ..figures import Figure, describe
from .summary import Row


class Heading(NamedTuple):
    level: int
    text: str


@dataclass(frozen=True)
class Table:
    """A head and rows of text; the first column is a name, the others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | str | list[str] | Table | Figure


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown, figures left out."""
    return "\n\n".join(_marked(b) for b in blocks if not isinstance(b, Figure)) + "\n"


def _marked(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Table(head, rows):
            rule = ["---", *["---:"] * (len(head) - 1)]
            return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
        case list():
            return "\n".join(f"* {text}" for text in block)
    return str(block)


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }
th, td { padding: 0.3rem 0.6rem; text-align: right; border-bottom: 1px solid #8886; }
th:first-child { text-align: left; }
figure { margin: 1.5rem 0; }
figcaption { font-size: 13px; color: #777; }
"""


def html_page(blocks: Iterable[Block], title: str) -> str:
    """The blocks as one HTML file that needs nothing else: plotly.js is inside."""
    body = "\n".join(map(_tagged, blocks))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>\n{body}\n</body></html>\n"
    )


def _tagged(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Table(head, rows):
            columns = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
            return (
                f"<table><thead><tr>{columns}</tr></thead>"
                f"<tbody>{''.join(map(_tagged_row, rows))}</tbody></table>"
            )
        case list():
            return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in block)}</ul>"
        case Figure():
            drawn = block.to_html(
                full_html=False, include_plotlyjs=False, config={"responsive": True}
            )
            words = escape(describe(block))
            return f"<figure>{drawn}<figcaption>{words}</figcaption></figure>"
    return f"<p>{escape(str(block))}</p>"


def _tagged_row(row: tuple[str, ...]) -> str:
    name, *cells = row
    numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row">{escape(name)}</th>{numbers}</tr>'


def as_csv(rows: Sequence[Row]) -> str:
    """Every number of every row, empty where it is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [f.name for f in fields(Row)]
    writer.writerow(names)
    for row in rows:
        values = (getattr(row, name) for name in names)
        writer.writerow(["" if value is None else value for value in values])
    return out.getvalue()


def shown(value: float | int | None, form: str = ".2f", after: str = "") -> str:
    """A number as text, a dash for one that is not known."""
    return "-" if value is None else f"{value:{form}}{after}"
