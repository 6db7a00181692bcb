"""Runs `skep practice` with as many times the usual samples in an epoch as the first argument says, from slow peers.

For tests that wait for rounds, whatever their size: peers that compute half as much leave the processor to what they
test. For those that need a long epoch.
"""

import sys

from skep.cli.main import run
from skep.host.practice import swarm

usual = swarm.practice_manifest
times = float(sys.argv.pop(1)) if __name__ == "__main__" else 1.0


def other(**facts):
    manifest = usual(**facts)
    manifest["sync"]["target_batch_size"] = round(times * manifest["sync"]["target_batch_size"])
    return manifest


if __name__ == "__main__":
    swarm.practice_manifest, swarm.SHARE = other, swarm.SHARE / 2
    sys.exit(run())
