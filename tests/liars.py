"""A stock peer that publishes progress that cannot be true."""

import hivemind
from hivemind.dht.schema import RSASignatureValidator, SchemaValidator
from hivemind.optim.progress_tracker import LocalTrainingProgress, ProgressTracker, TrainingProgressSchema
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from swarm_peers import STEP_BATCH, wait_until

FAR = 10**9
NOBODY = b"\x12\x20" + bytes(32)
"""A peer id that nobody has."""


class Liar:
    """A node of stock hivemind that publishes a progress record in any run."""

    def __init__(self, seeds):
        self.dht = hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60)
        self._key = RSAPrivateKey()
        self._signer = RSASignatureValidator(self._key)
        self.dht.add_validators([self._signer])

    def publish(self, run_id, *readers, **false):
        """Publish false progress; returns a stock tracker that reads it, as soon as `readers` have it too."""
        self.dht.add_validators([SchemaValidator(TrainingProgressSchema, prefix=run_id)])
        record = LocalTrainingProgress(
            time=get_dht_time(),
            client_mode=False,
            **(
                {
                    "peer_id": self.dht.peer_id.to_bytes(),
                    "epoch": 1,
                    "samples_accumulated": 0,
                    "samples_per_second": 0.0,
                }
                | false
            ),
        )
        place = {"key": f"{run_id}_progress", "subkey": self._signer.local_public_key}
        assert self.dht.store(**place, value=record.dict(), expiration_time=get_dht_time() + 600)
        for reader in (self.dht, *readers):
            wait_until(lambda reader=reader: place["subkey"] in reader.get(place["key"], latest=True).value)
        return ProgressTracker(self.dht, run_id, 2 * STEP_BATCH, start=False, private_key=RSAPrivateKey())
