"""What the pages are put together of: the page itself, bars, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from bench_tasks.reports.report_style import CSS

__all__ = ["bar", "document", "percent", "table", "whisker"]


def document(title: str, body: str, style: str = "") -> str:
    """A self-contained page; `body` is HTML, `style` is added to that of all pages."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        '<meta name=color-scheme content="light dark">'
        f"<title>bench_tasks: {escape(title)}</title><style>{CSS}{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def percent(value: float) -> str:
    """Of a share, without decimals."""
    return f"{100 * value:.0f}\u202f%"


def bar(name: str, share: float, extra: str, number: str) -> str:
    """A row with a bar; `extra` is HTML that lies upon it, `number` HTML that stands beside it."""
    return (
        f"<div class=row><div class=name>{escape(name)}</div><div class=bar><div class=track>"
        f'<i class=fill style="width:{100 * share:.1f}%"></i>{extra}</div></div>'
        f"<div class=num>{number}</div></div>"
    )


def whisker(low: float, high: float) -> str:
    """An interval, to lie upon a bar."""
    return f'<i class=whisker style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A card with a table of texts, none of them HTML."""
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f"<div class=card><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table></div>"
