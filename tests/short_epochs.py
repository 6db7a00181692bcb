"""Runs `skep practice` with a quarter of the samples in an epoch, from peers that compute half as much.

For tests that wait for rounds, whatever their size: it leaves the processor to what they test.
"""

import sys

from skep.cli.main import run
from skep.host.practice import swarm

usual = swarm.practice_manifest


def shorter(**facts):
    manifest = usual(**facts)
    manifest["sync"]["target_batch_size"] //= 4
    return manifest


if __name__ == "__main__":
    swarm.practice_manifest, swarm.SHARE = shorter, swarm.SHARE / 2
    sys.exit(run())
