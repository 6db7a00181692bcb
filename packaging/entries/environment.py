"""Runs before the frozen programs: restores LD_LIBRARY_PATH, so that child processes load the system's libraries.

PyInstaller's boot loader sets LD_LIBRARY_PATH to our folder. A browser or a keyring's prompter that inherits it would
load our libraries instead of its own; a frozen program sets it again for itself.
"""

import os

for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
    before = os.environ.pop(f"{name}_ORIG", None)
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before
# otherwise a frozen program started from skep would use our unpacked files instead of its own
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
