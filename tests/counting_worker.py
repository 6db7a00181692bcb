"""The worker, which also says in its log how many samples each micro-batch has that it draws: "computed 4".

`counting_worker.py 600000000` takes the processor's ranks for cards with so many bytes of memory each.
"""

import sys

from skep.core.device import Device, DeviceKind
from skep.worker import main

_run = main.Volunteer.run


def run(volunteer):
    # imported only now, as by the worker itself: torch starts threads
    from skep.worker.ranks import choice  # noqa: PLC0415
    from skep.worker.training.data import Samples  # noqa: PLC0415

    draw = Samples.next_batch

    def counted(self, count):
        batch = draw(self, count)
        sys.stderr.write(f"computed {len(batch)}\n")
        sys.stderr.flush()
        return batch

    def look_at(names, _precision):
        cards = [Device(DeviceKind.NVIDIA, index, name, int(sys.argv[1])) for index, name in enumerate(names)]
        return choice.Found(tuple(zip(names, cards, strict=True)))

    Samples.next_batch = counted
    if sys.argv[1:]:
        choice.look_at = look_at
    _run(volunteer)


if __name__ == "__main__":
    main.Volunteer.run = run
    main.main()
