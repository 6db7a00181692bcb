"""A join link for people: the line itself, and a QR code of it where there is a terminal."""

from __future__ import annotations

import io

from skep.cli.parser import Context
from skep.cli.show.speech import tr


def show_link(context: Context, link: str) -> None:
    """A note with the link and its QR code; nothing for programs, which have the link in their JSON."""
    if not link or context.terminal.json:
        return
    context.terminal.note(tr("Others join with: skep join '{link}'", link=link))
    if context.terminal.error.is_terminal:
        # no-wrap printing of half blocks; a reader that cannot draw them still has the line above
        context.terminal.error.print(qr_code(link), soft_wrap=True, markup=False)


def qr_code(text: str) -> str:
    """`text` as a QR code of half blocks, dark on light, for a terminal."""
    import segno  # noqa: PLC0415 - only when one is printed

    drawn = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(drawn, compact=True)
    return drawn.getvalue()
