"""Attacks through the DHT: records that harm who reads them, floods of records and questions, false progress."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Awaitable, Callable

import msgpack
from hivemind.dht import DHTID
from hivemind.dht.node import DictionaryDHTValue
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from attacks.stranger import DICTIONARY, LATER, Attack, Calling, Stranger

TUPLE = 0x40
"""hivemind's extension of msgpack, which is decoded recursively."""
LEVELS = 280
LARGE, ALMOST_LARGE = 20_000, 15_500
MEGABYTE = 1_000_000
UNDECODABLE = b"\xc1"
AN_HOUR = 3540.0
"""Seconds, a minute less."""
EPOCHS = 8
"""How many a run may go through during an attack."""
ONE = MSGPackSerializer.dumps(1)


def bomb() -> bytes:
    value: bytes = msgpack.packb([])
    for _ in range(LEVELS):
        value = msgpack.packb(msgpack.ExtType(TUPLE, value))
    return value


def name(text: str) -> bytes:
    return MSGPackSerializer.dumps(text)


async def no_attack(own: Stranger) -> None:
    """A ping now and then, for comparison."""
    await own.repeat(lambda: own.at_once(own.dht(peer).rpc_ping(dht_pb2.PingRequest()) for peer in own.peers), 1.0)


async def nested_record(own: Stranger) -> None:
    """1.4 kB that take a stock reader's whole stack, among the progress records."""
    await own.repeat(lambda: own.store(own.progress_key, bomb(), tag=name("bomb")), 1.0)


async def nested_value(own: Stranger) -> None:
    """The same as the key's only value."""
    await own.repeat(lambda: own.store(own.progress_key, bomb()), 1.0)


async def nested_subkey(own: Stranger) -> None:
    """The same as a subkey."""
    await own.repeat(lambda: own.store(own.progress_key, ONE, tag=bomb()), 1.0)


async def undecodable_record(own: Stranger) -> None:
    """Bytes that are no msgpack."""
    await own.repeat(lambda: own.store(own.progress_key, UNDECODABLE, tag=name("bad")), 0.5)


async def large_records(own: Stranger) -> None:
    """Progress records of 20 kB, each under a new subkey."""
    value = MSGPackSerializer.dumps(b"x" * LARGE)
    await own.repeat(lambda: own.store(own.progress_key, value, tag=name(secrets.token_hex(8))), 0.01)


async def beginnings_of_signatures(own: Stranger) -> None:
    """Records in which a stock reader looks for the end of a signature 1,400 times, from each beginning to the end."""
    value = MSGPackSerializer.dumps(b"[signature:" * 1400)
    await own.repeat(lambda: own.store(own.progress_key, value, tag=name(secrets.token_hex(8))), 0.01)


async def records_of_a_megabyte(own: Stranger) -> None:
    """Values of 1 MB, each under a new key."""
    value = MSGPackSerializer.dumps(b"x" * MEGABYTE)
    await own.repeat(lambda: own.store(secrets.token_hex(8), value), 0.01)


async def a_full_key(own: Stranger) -> None:
    """Under the key of the group that gradients are averaged in, more than a node may answer at once."""
    value, number = MSGPackSerializer.dumps(b"x" * ALMOST_LARGE), itertools.count()

    async def fill() -> None:
        expires = get_dht_time() + AN_HOUR
        await own.store(f"{own.gradients}.0b", value, tag=name(f"{next(number)}"), expires=expires)

    await own.repeat(fill, 0.01)


async def records_of_others(own: Stranger) -> None:
    """That no other peer searches for a group, nor gives a state, for an hour: one by one, and as a neighbour hands them over."""

    async def forge() -> None:
        expires = get_dht_time() + AN_HOUR
        for averager in (own.gradients, own.state):
            for key, said in ((f"{averager}.0b", False), (f"{averager}.all_averagers", None)):
                value, together = MSGPackSerializer.dumps(said), DictionaryDHTValue()
                for peer in own.peers:
                    together.store(peer.to_bytes(), value, expires)
                    await own.store(key, value, tag=MSGPackSerializer.dumps(peer.to_bytes()), expires=expires)
                await own.store(key, MSGPackSerializer.dumps(together), tag=DICTIONARY, expires=expires)

    await own.repeat(forge, 0.5)


def new_keys(_own: Stranger, count: int) -> list[bytes]:
    return [DHTID.generate(source=secrets.token_bytes(8)).to_bytes() for _ in range(count)]


def flooding(
    count: int,
    *,
    keys: Callable[[Stranger, int], list[bytes]] = new_keys,
    subkeys: Callable[[int], list[bytes]] = lambda count: [name("a")] * count,
    value: bytes = ONE,
    cached: bool = False,
) -> Callable[[Stranger], Awaitable[None]]:
    """Requests of so many records each, by default under new keys; `cached`: for the cache, which has a limit of its own."""

    async def attack(own: Stranger) -> None:
        async def flood() -> None:
            await own.send(
                dht_pb2.StoreRequest(
                    keys=keys(own, count),
                    subkeys=subkeys(count),
                    values=[value] * count,
                    expiration_time=[get_dht_time() + LATER] * count,
                    in_cache=[cached] * count,
                )
            )

        await own.repeat(flood, 0.01)

    return attack


def expiring(when: Callable[[], float]) -> Callable[[Stranger], Awaitable[None]]:
    async def attack(own: Stranger) -> None:
        await own.repeat(lambda: own.store(own.progress_key, ONE, tag=name("late"), expires=when()), 0.2)

    return attack


def subkeys_that_are_none(*subkeys: object) -> Callable[[Stranger], Awaitable[None]]:
    async def attack(own: Stranger) -> None:
        each = itertools.cycle(map(msgpack.packb, subkeys))
        await own.repeat(lambda: own.store(own.progress_key, ONE, tag=next(each)), 0.0)

    return attack


async def whole_dictionary(own: Stranger) -> None:
    """A dictionary of progress records, as replicas hand them over: one is nested, one is empty and has no expiration."""
    bad = DictionaryDHTValue()
    bad.store(b"bomb", bomb(), get_dht_time() + LATER)
    bad.store(b"none", b"", math.inf)
    value = MSGPackSerializer.dumps(bad)
    await own.repeat(lambda: own.store(own.progress_key, value, tag=DICTIONARY), 0.5)


async def dictionary_in_the_place_of_a_value(own: Stranger) -> None:
    """What the averagers' keys hold, replaced by one value that lasts longer."""

    async def replace_all() -> None:
        for key in (own.progress_key, f"{own.state}.all_averagers", f"{own.gradients}.all_averagers"):
            await own.store(key, ONE, expires=get_dht_time() + 3000.0)

    await own.repeat(replace_all, 0.5)


async def unequal_lists(own: Stranger) -> None:
    """A request with more keys than values."""
    request = dht_pb2.StoreRequest(keys=[DHTID.generate(source=b"a").to_bytes()] * 5, subkeys=[b""], values=[ONE])
    await own.repeat(lambda: own.send(request))


async def keys_that_are_none(own: Stranger) -> None:
    """Keys of the wrong length."""
    request = dht_pb2.StoreRequest(
        keys=[b"", b"x" * 3, b"y" * 5000],
        subkeys=[name("a")] * 3,
        values=[ONE] * 3,
        expiration_time=[get_dht_time() + LATER] * 3,
        in_cache=[False] * 3,
    )
    await own.repeat(lambda: own.send(request))


async def many_questions(own: Stranger) -> None:
    """A thousand keys in a question, many questions at once."""
    keys = [DHTID.generate(source=secrets.token_bytes(8)).to_bytes() for _ in range(1000)]
    ask = dht_pb2.FindRequest(keys=keys)
    await own.repeat(lambda: own.at_once(own.dht(peer).rpc_find(ask) for peer in own.peers for _ in range(4)), 0.01)


async def a_question_for_everything(own: Stranger) -> None:
    """The same key 20,000 times in a question: the answer is so many times as long."""
    ask = dht_pb2.FindRequest(keys=[DHTID.generate(source=own.progress_key).to_bytes()] * 20_000)
    await own.repeat(lambda: own.at_once(own.dht(peer).rpc_find(ask) for peer in own.peers), 0.05)


async def questions_without_end(own: Stranger) -> None:
    """As many keys in a question as are answered, all records of the run among them, again and again."""
    kept = [
        own.progress_key,
        *(f"{each}{end}" for each in (own.gradients, own.state) for end in (".0b", ".all_averagers")),
    ]
    keys = [DHTID.generate(source=each).to_bytes() for each in kept]
    ask = dht_pb2.FindRequest(keys=keys + new_keys(own, 256 - len(keys)))
    await own.repeat(lambda: own.at_once(own.dht(peer).rpc_find(ask) for peer in own.peers for _ in range(4)), 0.0)


async def invented_neighbours(own: Stranger) -> None:
    """Pings that ask to be taken into the routing table, each with another node's id."""

    async def introduce() -> None:
        peers = dht_pb2.NodeInfo(node_id=DHTID.generate().to_bytes())
        await own.at_once(own.dht(peer).rpc_ping(dht_pb2.PingRequest(peer=peers)) for peer in own.peers)

    await own.repeat(introduce, 0.005)


# --- false progress


def claiming(ahead: int = 0, **said: object) -> Callable[[Stranger], Awaitable[None]]:
    """Records that say this, of epochs `ahead` of the one that the run is in, and of the next few, as time passes."""

    async def attack(own: Stranger) -> None:
        epochs = itertools.cycle(range(own.target.epoch + ahead, own.target.epoch + ahead + EPOCHS))
        await own.repeat(lambda: own.claim(**({"epoch": next(epochs)} | said)), 0.0)

    return attack


async def many_claims(own: Stranger) -> None:
    """As many invented peers as keys can be made, each with a believable rate."""
    await own.repeat(
        lambda: own.claim(samples=own.target.target_batch_size // 4, epoch=own.target.epoch + 1, rate=20.0), 0.0
    )


async def a_claim_that_is_no_progress(own: Stranger) -> None:
    """A signed record in which nothing has the right kind."""
    await own.repeat(lambda: own.claim(samples="many", epoch=[1], rate={}, time="now", more="x" * 5000), 0.2)


async def a_long_id(own: Stranger) -> None:
    """Peers with ids of 15 kB, whose text takes the square of that."""
    await own.repeat(lambda: own.claim(samples=1, epoch=own.target.epoch, peer_id=secrets.token_bytes(15_000)), 0.0)


async def unsigned_claims(own: Stranger) -> None:
    """Progress without a signature, under other peers' ids."""
    peers = itertools.cycle(own.peers)

    async def claim() -> None:
        peer = next(peers)
        said = {"peer_id": peer.to_bytes(), "epoch": 10**6, "samples_accumulated": 10**9}
        await own.store(own.progress_key, MSGPackSerializer.dumps(said), tag=name(str(peer)))

    await own.repeat(claim, 0.0)


RECORDS: dict[str, Calling] = {
    "no attack": Attack(no_attack),
    "nested record": Attack(nested_record),
    "nested value": Attack(nested_value),
    "nested subkey": Attack(nested_subkey),
    "undecodable record": Attack(undecodable_record),
    "large records": Attack(large_records),
    "beginnings of signatures": Attack(beginnings_of_signatures),
    "records of 1 MB": Attack(records_of_a_megabyte),
    "many small records": Attack(flooding(1000)),
    "many subkeys": Attack(
        flooding(
            1000,
            keys=lambda own, count: [DHTID.generate(source=own.progress_key).to_bytes()] * count,
            subkeys=lambda count: [name(secrets.token_hex(8)) for _ in range(count)],
        )
    ),
    "large records in the cache": Attack(flooding(100, value=MSGPackSerializer.dumps(b"x" * LARGE), cached=True)),
    "a record without an end": Attack(expiring(lambda: math.inf)),
    "a record until no time": Attack(expiring(lambda: math.nan)),
    "a record of a year": Attack(expiring(lambda: get_dht_time() + 365 * 86_400)),
    "subkeys that are none": Attack(subkeys_that_are_none(1, [1, [2]], {"a": 1}, None, 1.5, b"", "text")),
    "a whole dictionary": Attack(whole_dictionary),
    "a value in the place of all records": Attack(dictionary_in_the_place_of_a_value),
    "a key that is full": Attack(a_full_key),
    "records of others": Attack(records_of_others),
    "lists of unequal length": Attack(unequal_lists),
    "keys that are none": Attack(keys_that_are_none),
    "many questions": Attack(many_questions),
    "a question with a long answer": Attack(a_question_for_everything),
    "questions without end": Attack(questions_without_end),
    "invented neighbours": Attack(invented_neighbours),
    "a false epoch": Attack(claiming(epoch=10**9)),
    "the next epoch": Attack(claiming(ahead=1)),
    "false samples": Attack(claiming(samples=10**12)),
    "a false rate": Attack(claiming(samples=1, rate=1e12)),
    "samples below none": Attack(claiming(samples=-(10**9), rate=-1e9)),
    "a rate that is no number": Attack(claiming(samples=1, rate=math.nan)),
    "a claim of tomorrow": Attack(claiming(samples=100, time=get_dht_time() + 86_400)),
    "many invented peers": Attack(many_claims),
    "a claim of wrong kinds": Attack(a_claim_that_is_no_progress),
    "claims under long ids": Attack(a_long_id),
    "claims of others unsigned": Attack(unsigned_claims),
}
