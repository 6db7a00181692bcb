"""Two peers divide the data through a real DHT, and a record that is no claim disturbs nobody."""

import time

from hivemind.utils import get_dht_time

import forked_peers
from manifests import raw
from skep.core.project.shards import Claim, Claims
from skep.recipes.registry import parse_manifest
from skep.worker.connection.guards import LONGEST_SECONDS
from skep.worker.swarm.division import CALL_SECONDS, RENEWAL_SECONDS, DataDivision
from swarm_peers import wait_until

MANIFEST = parse_manifest(raw())


def answer(division):
    """What a division knows when it asks anew."""
    division._known_at = float("-inf")
    wait_until(lambda: division.claims() is not None)
    return division.claims()


def test_a_peer_learns_what_another_claims_and_not_its_own(make_dhts):
    first, second = make_dhts(2)
    ours, theirs = DataDivision(first, MANIFEST), DataDivision(second, MANIFEST)
    theirs._own = b"another peer"  # the peers of one process have one key
    ours.publish(Claim(3, 0b1010))
    wait_until(lambda: answer(theirs) == Claims((Claim(3, 0b1010),)))
    for lots in (0b1, 0b11, 0b111):  # quickly one after the other: the last counts
        ours.publish(Claim(4, lots))
    wait_until(lambda: (ours.claims(), answer(theirs))[1] == Claims((Claim(4, 0b111),)))
    assert answer(ours) == Claims()
    second.store(theirs._key, subkey=b"liar", value=["no claim"], expiration_time=get_dht_time() + 60)
    wait_until(lambda: len(second.get(theirs._key, latest=True).value) == 2)
    assert answer(theirs) == Claims((Claim(4, 0b111),))


def test_a_record_lasts_less_than_an_hour_and_is_stored_again_while_its_peer_trains(make_dhts):
    (dht,) = make_dhts(1)
    division = DataDivision(dht, MANIFEST)
    division.publish(Claim(1, 0b1))

    def expires():
        found = dht.get(division._key, latest=True)
        return found.value[division._own].expiration_time if found else 0.0

    wait_until(expires)
    first, told = expires(), division._published_at
    assert 0 < first - get_dht_time() <= LONGEST_SECONDS - 60
    division.renew()
    assert division._published_at == told  # the others still know it
    division._published_at -= RENEWAL_SECONDS
    division.renew()
    wait_until(lambda: expires() > first)


def test_an_answer_is_used_for_a_moment_and_not_waited_for(make_dhts):
    (dht,) = make_dhts(1)
    division = DataDivision(dht, MANIFEST)
    asked = forked_peers.family(dht)
    forked_peers.suspend(asked)
    begun = time.monotonic()
    assert division.claims() is None  # asked, and not answered yet
    assert time.monotonic() - begun < 1
    for process in asked:
        process.resume()
    wait_until(lambda: division.claims() is not None)
    division._known_at -= CALL_SECONDS
    forked_peers.suspend(asked)
    assert division.claims() == Claims()  # what is known is used while it is asked for anew
    assert division._answer is not None
    for process in asked:
        process.resume()
