"""skep's engine without a project: all sensors of this computer and of the user, read as usual.

    python engine_alone.py HOME

Prints {thread's name: its id} as one line of JSON once everything has been read, and again for each line of its
standard input; ends at the end of that. For `sensors.py`, which measures from outside what the threads cost.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.core.session import messages as m

SETTLED_SECONDS = 5.0


def main() -> None:
    home = Home(Path(sys.argv[1]))
    home.create()
    with bootstrap.build(home) as engine:
        engine.start()
        time.sleep(SETTLED_SECONDS)
        tell()
        for _ in sys.stdin:
            tell()
        engine.post(m.Quit())
        engine.join(10)


def tell() -> None:
    print(json.dumps({each.name: each.native_id for each in threading.enumerate()}), flush=True)


if __name__ == "__main__":
    main()
