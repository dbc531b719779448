"""Progress of downloads: a live table on a terminal, a line at each turn elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ortimg.inputs.cache import megabytes
from ortimg.inputs.result import OnUpdate, Update


@contextmanager
def show(stream: TextIO) -> Iterator[OnUpdate]:
    """Shows updates on `stream` while the block runs. Safe to call from several threads."""
    if stream.isatty():
        with _live(stream) as update:
            yield update
    else:
        yield _lines(stream)


def _lines(stream: TextIO) -> OnUpdate:
    last: dict[tuple[str, str], str] = {}
    mutex = threading.Lock()

    def update(news: Update) -> None:
        name = (news.kind.value, news.key)
        with mutex:
            if last.get(name) != news.text:  # byte counts alone are no line
                last[name] = news.text
                print(f"{news.kind.value} {news.key}: {news.text}", file=stream, flush=True)

    return update


@contextmanager
def _live(stream: TextIO) -> Iterator[OnUpdate]:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    latest: dict[tuple[str, str], Update] = {}
    mutex = threading.Lock()

    def render() -> Table:
        grid = Table.grid(padding=(0, 2))
        with mutex:
            for (kind, key), news in sorted(latest.items()):
                done = f"{megabytes(news.done)} MB" if news.done else ""
                share = f"{100 * news.done // news.total} %" if news.total and news.done < news.total else ""
                grid.add_row(kind, key, done, share, news.text)
        return grid

    def update(news: Update) -> None:
        with mutex:
            latest[news.kind.value, news.key] = news

    # the table is drawn anew a few times a second, whatever the number of updates
    with Live(console=Console(file=stream), get_renderable=render, refresh_per_second=4, transient=True):
        yield update
