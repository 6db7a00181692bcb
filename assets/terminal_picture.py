"""Converts a terminal's output, with its colours, into an SVG: python terminal_picture.py TITLE < screen > picture.svg

The picture in the guide to the terminal is made from a real run:

    tmux new-session -d -s demo -x 96 -y 30 'make demo; sleep 60'
    tmux capture-pane -e -p -t demo | python assets/terminal_picture.py 'skep demo' > assets/screenshots/demo.svg
"""

import io
import re
import sys

from rich.console import Console
from rich.text import Text

WIDTH = 96


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    # the demo works in a folder with a random name
    screen = re.sub(r"(?<=/tmp/skep-demo-)\w{8}", "xxxxxxxx", sys.stdin.read())
    console.print(Text.from_ansi(screen.rstrip()))
    picture = console.export_svg(title=sys.argv[1])
    # without the font's address: opening the picture must not fetch it, and any monospaced font will do
    sys.stdout.write(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))


if __name__ == "__main__":
    main()
