"""hivemind's search for a group, without a network."""

from types import SimpleNamespace

from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.matchmaking import Matchmaking

from skep.worker.swarm.averaging.groups import Company, Groups


def searching(own, kind, *, client_mode=False, avoided=()):
    """That of the peer `own`, changed by `kind` if it is not None. To be called in an event loop."""
    search = Matchmaking(
        SimpleNamespace(peer_id=own),
        b"schema",
        SimpleNamespace(peer_id=own, num_workers=1),
        servicer_type=DecentralizedAverager,
        prefix="run",
        target_group_size=None,
        min_group_size=2,
        min_matchmaking_time=2.0,
        request_timeout=1.0,
        client_mode=client_mode,
    )
    if kind:
        company = Company(None, None)
        for peer in avoided:
            company.avoid(peer)
        kind(search, Groups(dict), company)
    return search
