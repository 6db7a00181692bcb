"""Entry of the worker process: `python -m skep.worker.main`, spoken to by the engine over stdin and stdout."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.messages import StartTraining, WorkerStage
from skep.core.model import Problem, Stage
from skep.core.wire import WireError
from skep.worker import processes
from skep.worker.link import Link
from skep.worker.volunteer import Volunteer, complain


def main() -> None:
    """Run one worker. Always ends the process itself, with nothing of it left behind."""
    link = Link.over_stdio()
    link.close_in_children()
    processes.keep_family_together()
    processes.fork_into_sessions()
    processes.allow_many_files()
    volunteer = Volunteer(first_word(link), link)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=volunteer.stop, daemon=True).start())
    volunteer.listen()
    link.send(WorkerStage(Stage.HARDWARE, 0.0))
    multiprocessing.set_start_method("fork", force=True)  # hivemind's processes cannot be pickled
    try:
        volunteer.run()
    except SkepError as error:
        volunteer.fail(error.problem, retry=isinstance(error, SwarmError | DataError | DeviceError))
    except BaseException:  # noqa: BLE001 - the last resort: words for the user, the traceback for the log
        complain()
        volunteer.fail(UNEXPECTED, retry=True)
    volunteer.depart()


UNEXPECTED = Problem(
    "The training process met an error that skep does not know.",
    "Its log has the details; skep starts it again.",
)


def first_word(link: Link) -> StartTraining:
    """The start message. Without one the process ends: with 0 when the engine is gone, with 2 when it speaks nonsense."""
    try:
        start = link.first()
    except (OSError, WireError):
        complain()
        os._exit(2)
    if not isinstance(start, StartTraining):
        os._exit(0 if start is None else 2)
    return start


if __name__ == "__main__":
    main()
