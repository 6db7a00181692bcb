"""The data divided among the peers of a swarm: each publishes in the DHT which lots it holds, and reads the others' records.

A record is {"pass": number, "lots": little-endian bits}, signed by the peer's key. It is advice: a wrong one makes peers
draw some samples twice, or leave some out for one pass. Stock peers neither read nor write such records.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

import hivemind
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.utils import MPFuture, ValueWithExpiration, get_dht_time

from skep.core.project.manifest import Manifest
from skep.core.project.shards import Claim, Claims, claim_of

CALL_SECONDS: Final = 2.0
"""Least time between two questions and between two records: the lots of a small data set follow each other quickly."""
KNOWN_SECONDS: Final = 10.0
"""How long an answer is used without waiting for a newer one."""
ANSWER_SECONDS: Final = 3.0
"""How long to wait for an answer; then what was known before is used."""
RECORD_SECONDS: Final = 55 * 60.0
"""Lifetime of a record: what a peer has drawn counts for this pass after it has left, until this time. Peers take none
that expires later than in an hour (`guards`), and clocks differ."""
RENEWAL_SECONDS: Final = 20 * 60.0
"""A record that has not changed is published again after this time."""


class DataDivision:
    """Implements Division of `worker.training.data`. For use in one thread."""

    def __init__(self, dht: hivemind.DHT, manifest: Manifest) -> None:
        signer = RSASignatureValidator()
        dht.add_validators([signer])
        # lots are numbered by the index, so that a revision with other data has claims of its own
        self._dht, self._key = dht, f"{manifest.run_id}_data_{manifest.data.sha256[:16]}"
        self._own: bytes = signer.local_public_key
        self._known, self._known_at = Claims(), -math.inf
        self._answer: MPFuture[Any] | None = None
        self._asked_at = self._published_at = -math.inf
        self._own_claim: Claim | None = None
        self._is_told = True

    def claims(self) -> Claims | None:
        now = time.monotonic()
        self._publish(now)
        if self._answer is None and now - self._known_at >= CALL_SECONDS:
            self._answer, self._asked_at = self._dht.get(self._key, latest=True, return_future=True), now
        if self._answer is not None and self._answer.done():
            self._known, self._known_at, self._answer = self._read(self._answer), now, None
        elif self._answer is not None and now - self._asked_at >= ANSWER_SECONDS:
            self._answer.cancel()
            self._known_at, self._answer = now, None
        return self._known if now - self._known_at < KNOWN_SECONDS else None

    def publish(self, claim: Claim) -> None:
        self._own_claim, self._is_told = claim, False
        self._publish(time.monotonic())

    def renew(self) -> None:
        self._publish(time.monotonic())

    def _publish(self, now: float) -> None:
        claim, passed = self._own_claim, now - self._published_at
        if claim is None or passed < (RENEWAL_SECONDS if self._is_told else CALL_SECONDS):
            return
        self._is_told, self._published_at = True, now
        self._dht.store(
            self._key,
            subkey=self._own,
            value={"pass": claim.pass_number, "lots": claim.lots.to_bytes(claim.lots.bit_length() // 8 + 1, "little")},
            expiration_time=get_dht_time() + RECORD_SECONDS,
            return_future=True,
        )

    def _read(self, answer: MPFuture[Any]) -> Claims:
        if answer.cancelled() or answer.exception() is not None:
            return self._known
        found = answer.result()
        records = found.value if isinstance(found, ValueWithExpiration) and isinstance(found.value, dict) else {}
        others = (claim_of(record.value) for key, record in records.items() if key != self._own)
        return Claims(tuple(claim for claim in others if claim is not None))
