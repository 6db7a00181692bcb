"""The frozen app. multiprocessing starts its helper processes with it, so freeze_support must come first."""

import multiprocessing
import sys

multiprocessing.freeze_support()

from skep_gui.main import run  # noqa: E402 - see above

sys.exit(run())
