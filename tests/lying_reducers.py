"""Stock averagers that return something else than the average of what they reduce."""

import multiprocessing

from hivemind.averaging import averager as averager_module
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.compression import deserialize_torch_tensor, serialize_torch_tensor

LIE = multiprocessing.Value("d", 0.0)
"""What is added to each value; the averagers that are forked from this process read it."""


class _LyingRunner(AllReduceRunner):
    async def _accumulate_parts_streaming(self, stream, sender_index):
        async for answer in super()._accumulate_parts_streaming(stream, sender_index):
            delta = deserialize_torch_tensor(answer.tensor_part)
            answer.tensor_part.CopyFrom(serialize_torch_tensor(delta + LIE.value))
            yield answer


def lying(kind):
    """An averager of that kind which adds LIE to all that it returns."""

    class Lying(kind):
        def run(self):
            averager_module.AllReduceRunner = _LyingRunner  # in its own process
            super().run()

    Lying.__name__ = kind.__name__  # the RPC handler names contain it
    return Lying
