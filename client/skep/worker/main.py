"""Entry of the worker process: `python -m skep.worker.main`, spoken to by the engine over stdin and stdout."""

from __future__ import annotations

import os
import signal
import threading

from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.session.messages import WorkerOptions, WorkerStage
from skep.core.session.phases import Stage
from skep.core.session.wire import WireError
from skep.core.text import Problem, Text
from skep.worker.process import children
from skep.worker.process.link import Link
from skep.worker.volunteer import Volunteer, complain


def main() -> None:
    """Run one worker. Ends the process itself in every case, and every process it has started."""
    link = Link.over_stdio()
    link.close_in_children()
    children.tie_to_this_process()
    children.fork_into_sessions()
    children.raise_file_limit()
    children.use_fork()
    volunteer = Volunteer(first_word(link), link)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=volunteer.stop, daemon=True).start())
    volunteer.listen()
    link.send(WorkerStage(Stage.HARDWARE, 0.0))
    try:
        volunteer.run()
    except SkepError as error:
        volunteer.fail(error.problem, retry=isinstance(error, SwarmError | DataError | DeviceError))
    except BaseException:  # noqa: BLE001 - the last resort: words for the user, the traceback for the log
        complain()
        volunteer.fail(UNEXPECTED, retry=True)
    volunteer.depart()


UNEXPECTED = Problem(
    Text("worker.training_process_met_error_skep"),
    Text("worker.log_has_details_skep_starts"),
)


def first_word(link: Link) -> WorkerOptions:
    """The start message. Without one the process ends: with 0 when the engine is gone, with 2 when it speaks nonsense."""
    try:
        options = link.first()
    except (OSError, WireError):
        complain()
        os._exit(2)
    if not isinstance(options, WorkerOptions):
        os._exit(0 if options is None else 2)
    return options


if __name__ == "__main__":
    main()
