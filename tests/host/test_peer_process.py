"""A seed's process whose first line is not its addresses."""

import sys

import pytest

from english import raises
from skep.core.errors import SwarmError
from skep.host.server import peer_process
from skep.host.server.peer_process import PeerProcess

LOST = '{"event": "problem", "title": {"id": "watch.part_ended", "args": {"part": "p2pd"}}, "hint": {"id": "", "args": {}}}'


@pytest.mark.parametrize(
    ("program", "why"), [(f"print({LOST!r})", "p2pd"), ("import sys; sys.exit('no key')", "did not start: no key")]
)
def test_a_seed_that_loses_a_part_before_it_has_told_its_addresses_has_not_started(tmp_path, monkeypatch, program, why):
    monkeypatch.setattr(peer_process, "module_command", lambda *_module: [sys.executable, "-c", program])
    with raises(SwarmError, match=why):
        PeerProcess([], tmp_path / "seed.log").start()
