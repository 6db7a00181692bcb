"""What the worker's sandbox enforces on this system, by a process that confines itself: `python -m skep.worker.sandbox.report`.

It waits for a line, as the worker does for its options, and prints core.sandbox.Sandbox as one line of JSON. The argument
is a folder that may be used, as the worker's run folder.
"""

from __future__ import annotations

import sys

import msgspec

from skep.worker.sandbox.cards import has_cards
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own


def main() -> None:
    sys.stdin.readline()
    found = confine(Own(sys.argv[1]), cards=has_cards())
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
