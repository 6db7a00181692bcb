"""For Lightning 2.6 (extra `lightning`): a strategy by which a Trainer trains in a swarm, beside other computers.

    Trainer(strategy=HivemindStrategy(target_batch_size=8192, run_id="my-run"), devices=1)

docs/train-your-own-script.md explains it. It needs neither Qt nor the app.
"""

from skep.lightning.strategy import HivemindStrategy

__all__ = ["HivemindStrategy"]
