"""The frozen terminal program. multiprocessing's helpers come this way too, so it must be asked first."""

import multiprocessing
import sys

multiprocessing.freeze_support()

from skep.cli.frozen import run  # noqa: E402 - see above

sys.exit(run())
