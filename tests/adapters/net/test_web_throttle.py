"""Downloads together keep the limit on their rate, from a real web server."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from skep.adapters.net.web import Patience, Stop, Throttle, Web
from skep.core.project.addresses import Reach
from skep.core.text import verbatim
from skep.host.server.file_server import serving

RATE = 800_000
SECONDS = 10.5


@pytest.fixture
def address(tmp_path):
    with (tmp_path / "shard").open("wb") as file:
        file.write(os.urandom(12_000_000))
    with serving(tmp_path) as web:
        yield f"{web}/shard"


@pytest.mark.alone
def test_several_downloads_share_one_limit(address):
    throttle, came = Throttle(lambda: RATE), [0, 0]
    stops = [Stop(), Stop()]

    def load(number):
        web = Web(Patience(), stops[number], Reach.ANY, throttle=throttle)
        with web.get(address, verbatim("x")) as answer:
            for chunk in answer.chunks():
                came[number] += len(chunk)
                if time.monotonic() > begun + SECONDS:
                    return

    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(load, range(2)))
    seconds = time.monotonic() - begun
    assert sum(came) / seconds == pytest.approx(RATE, rel=0.1)
    assert min(came) > 0.3 * max(came)


def test_a_limit_can_change_and_be_lifted_while_a_download_runs(address):
    rates = [400_000.0]
    web, came = Web(Patience(), Stop(), Reach.ANY, throttle=Throttle(lambda: rates[0])), 0
    begun = time.monotonic()
    with web.get(address, verbatim("x")) as answer:
        for chunk in answer.chunks():
            came += len(chunk)
            if came > 800_000:
                rates[0] = 0.0
    assert came == 12_000_000
    assert 1.5 < time.monotonic() - begun < 12
