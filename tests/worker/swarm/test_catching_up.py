"""How a state is asked for: again when donors refuse or are refused, with what is known of the swarm by then."""

from types import SimpleNamespace

import pytest

from english import raises
from skep.core.errors import SwarmError
from skep.core.text import Text
from skep.worker.swarm.catching_up import STATE_ATTEMPTS, CatchingUp
from skep.worker.swarm.state.coming import Loading
from skep.worker.swarm.state.download import Progress


class Peer(CatchingUp):
    """It loads what `attempts` bring, one after the other; the swarm is an epoch further at each look at it."""

    def __init__(self, *attempts):
        self._attempts, self._state_pause, self.told, self.known = iter(attempts), 0.0, [], []
        self._tell_loading = self.told.append
        self.tracker = SimpleNamespace(global_epoch=5, look=self._look)
        self.state_averager = SimpleNamespace(loading=Progress(), load_checked=self._load)

    def _look(self, _within):
        self.tracker.global_epoch += 1

    def _load(self, known, tell):
        self.known.append(known)
        tell(Loading(1, 2))
        self.known.append(self.state_averager.loading.known)
        self.tracker.global_epoch += 10  # while it is loaded
        tell(Loading(2, 2))
        self.known.append(self.state_averager.loading.known)
        result = next(self._attempts)
        if isinstance(result, Exception):
            raise result
        return result


REFUSAL = SwarmError(Text("peer.peer_claims_epoch", theirs=9, known=5), Text("peer.skep_tries_another_peer"))


def test_while_a_state_is_loaded_the_download_is_told_how_far_the_swarm_is():
    peer = Peer(15)
    peer._load_state()
    assert peer.known == [5, 5, 15]
    assert peer.told == [Loading(1, 2), Loading(2, 2)]


@pytest.mark.parametrize("failure", [None, REFUSAL])
def test_after_a_failure_the_swarm_is_looked_at_before_another_attempt(failure):
    peer = Peer(failure, 30)
    peer._load_state()
    assert peer.known[3] == 16


def test_the_last_failure_is_said():
    with raises(SwarmError, match="claims"):
        Peer(*[REFUSAL] * STATE_ATTEMPTS)._load_state()
