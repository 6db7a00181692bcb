"""Runs before the frozen programs: what they start must find the system's libraries and not theirs.

The boot loader points LD_LIBRARY_PATH at our folder. A browser or a keyring's prompter that inherits that would load
our libraries in place of its own, and a program of ours sets it anew for itself.
"""

import os

for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
    before = os.environ.pop(f"{name}_ORIG", None)
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before
# a program that skep starts unpacks and sets up for itself, also when a frozen program started it
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
