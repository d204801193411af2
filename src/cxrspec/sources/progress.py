"""Own the progress bars of the command line: on a terminal only, on stderr, gone when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cxrspec.sources.store import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars


@contextmanager
def terminal_progress(console: Console | None = None) -> Iterator[Progress | None]:
    """Show a bar with sizes for every download while the block runs; yield None where nobody watches.

    Args:
        console: Where to show them; stderr if absent.
    """
    from rich.console import Console

    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        yield _RichProgress(bars)


class _RichProgress:
    """The bars of one terminal."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    def start(self, name: str, total: int | None) -> Callable[[int], None]:
        """Add a bar; return what moves it."""
        task = self._bars.add_task(name, total=total)
        return lambda n: self._bars.advance(task, n)
