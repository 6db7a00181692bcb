"""A swarm's progress records in the DHT, from the seat of a peer that trains nothing: read, and one of our own.

Each trainer publishes its epoch, samples and rate under its run's progress key; hivemind computes the swarm's epoch from
them. A record of ours would count as a peer, so that a lone trainer would wait for a round with nobody: it stands there
only while no trainer carries the run on, with no samples and no rate, and tells newcomers which epoch to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import hivemind
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import SchemaValidator
from hivemind.optim.progress_tracker import LocalTrainingProgress, TrainingProgressSchema
from hivemind.utils import ValueWithExpiration, get_dht_time
from pydantic.v1 import ValidationError

BEACON_SECONDS: Final = 10.0
"""How long our record is believed after it was published last."""
ANSWER_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Swarm:
    """`peers` train now, the furthest of them at `epoch` (0 when there is none)."""

    peers: int = 0
    epoch: int = 0


class SwarmRecords:
    """Calls block for at most ANSWER_SECONDS; one thread only."""

    def __init__(self, dht: hivemind.DHT, run_id: str) -> None:
        self._dht, self._key = dht, f"{run_id}_progress"
        signer = RSASignatureValidator()
        self._own: bytes = signer.local_public_key
        dht.add_validators([SchemaValidator(TrainingProgressSchema, prefix=run_id), signer])
        self._lit = False

    def look(self) -> Swarm:
        """What the trainers say of themselves; our own record is not among them. Raises concurrent.futures' TimeoutError."""
        found = self._dht.get(self._key, latest=True, return_future=True).result(ANSWER_SECONDS)
        records = found.value if isinstance(found, ValueWithExpiration) and isinstance(found.value, dict) else {}
        trainers = [record for key, entry in records.items() if key != self._own and (record := _record(entry.value))]
        return Swarm(len(trainers), max((record.epoch for record in trainers), default=0))

    def light(self, epoch: int) -> None:
        """Say, for the next BEACON_SECONDS, that the run stands at `epoch`."""
        standing = LocalTrainingProgress(
            peer_id=self._dht.peer_id.to_bytes(),
            epoch=epoch,
            samples_accumulated=0,
            samples_per_second=0.0,
            time=get_dht_time(),
            client_mode=False,
        )
        self._store(standing.dict())
        self._lit = True

    def douse(self) -> None:
        """Take our record back, where there is one."""
        if self._lit:
            self._store(None)
            self._lit = False

    def _store(self, value: dict[str, Any] | None) -> None:
        self._dht.store(
            self._key,
            subkey=self._own,
            value=value,
            expiration_time=get_dht_time() + BEACON_SECONDS,
            return_future=True,
        ).result(ANSWER_SECONDS)


def _record(value: Any) -> LocalTrainingProgress | None:
    """None for a record taken back, and for nonsense."""
    try:
        return None if value is None else LocalTrainingProgress.parse_obj(value)
    except ValidationError:
        return None
