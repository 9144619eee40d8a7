"""The screen that tables and progress are drawn on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from judgebench.words import for_terminal


class Screen(Console):
    """A rich Console on which text is text: no markup, no emoji codes, and nothing in it that a
    terminal would obey. Its own colours and bars are drawn as ever."""

    def __init__(self, file: IO[str] | None = None, *, quiet: bool = False) -> None:
        super().__init__(file=file, quiet=quiet, markup=False, highlight=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As `Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=for_terminal(segment.text))
