"""Several devices of this computer in one worker: each has a process, a rank, and rank 0 alone speaks to the swarm.

Importing it has to precede the first group of ranks of a process, or that group lasts until the process has ended. Its
threads then run while Python ends, and one that has yet to release an object of Python aborts the process. The cause is in
torch: `torch.distributed.nn.functional` takes the group of the moment in which it is imported for its default arguments, and
a step of an optimizer imports it.
"""

import torch.distributed.nn.functional as _without_a_group  # noqa: F401 - so that it takes none for its default arguments
