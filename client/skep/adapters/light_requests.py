"""Loads requests without what it would load to guess the encoding of a text: skep asks it for bytes alone.

Requests can do without, and then warns. It saves 3 MB in every process that fetches something. Import this before
requests; where requests was there before, nothing changes.
"""

from __future__ import annotations

import sys
import warnings
from typing import Final

_GUESSER: Final = "charset_normalizer"

if "requests" not in sys.modules and _GUESSER not in sys.modules:
    # never taken away again: warnings.catch_warnings would change what other threads may say meanwhile
    warnings.filterwarnings("ignore", message="Unable to find acceptable character detection dependency")
    sys.modules[_GUESSER] = None  # type: ignore[assignment] # Python's way to say that it cannot be imported
    try:
        import requests  # noqa: F401 - loaded here, for whoever imports it next
    finally:
        del sys.modules[_GUESSER]
