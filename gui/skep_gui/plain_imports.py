"""Loads Qt without what PySide adds to every `import` of the process.

For its `__feature__` switches, of which skep uses none, PySide replaces `builtins.__import__` by one that reads the source
of each module that is imported from then on, to see whether it mentions PySide. Python keeps all of it in `linecache`:
11 MB of text here, and time before the tray is there. Import this before anything of Qt's; where Qt was there
before, nothing changes.
"""

from __future__ import annotations

import builtins

_as_python_imports = builtins.__import__

import PySide6.QtCore  # noqa: E402, F401 - between the two lines it is about

builtins.__import__ = _as_python_imports
