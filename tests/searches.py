"""hivemind's search for a group, without a network."""

from types import SimpleNamespace

from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.matchmaking import Matchmaking

from skep.worker.swarm.averaging.groups import Company, Groups


def company(heard=(), gone=(), others=(), hanging=()):
    """Of a peer whose last rounds averaged with the peers of each of `heard`.

    All of these are connected but those of `gone`, and so are `others`. They answer, but for those `hanging`.
    """

    async def connected():
        return {peer for peers in heard for peer in peers} - set(gone) | set(others)

    async def answers(peer, _within):
        return peer not in hanging

    made = Company(connected, answers)
    for peers in heard:
        made.hear(peers)
    return made


def told_nothing(_coroutine, **_options):
    """In place of what the DHT's process is told."""


def searching(
    own, kind, *, client_mode=False, avoided=(), heard=(), gone=(), others=(), hanging=(), dht=None, seconds=2.0
):
    """That of the peer `own`, changed by `kind` if it is not None. To be called in an event loop."""
    search = Matchmaking(
        SimpleNamespace(peer_id=own),
        b"schema",
        dht or SimpleNamespace(peer_id=own, num_workers=1, run_coroutine=told_nothing),
        servicer_type=DecentralizedAverager,
        prefix="run",
        target_group_size=None,
        min_group_size=2,
        min_matchmaking_time=seconds,
        request_timeout=seconds / 2,
        client_mode=client_mode,
    )
    if kind:
        known = company(heard, gone, others, hanging)
        for peer in avoided:
            known.avoid(peer)
        kind(search, Groups(dict), known)
    return search
