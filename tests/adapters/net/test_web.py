import pytest

from downloads import QUICK, ROOMY, assert_arrived, assert_failed, fetch, make_shard
from english import in_english
from skep.adapters.net.connections import Network
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.net.web import check_address
from skep.core.errors import DataError
from skep.core.project.addresses import Reach
from skep.core.project.shards import shard_name
from web_of_faults import ranged, status


@pytest.mark.parametrize(
    "address",
    [
        "https://a.org/i",
        "https://10.0.0.1:8443/i",
        "http://localhost:80/i",
        "http://127.9.9.9/i",
        "http://[::1]:8000/i",
    ],
)
def test_https_and_loopback_are_allowed(address):
    check_address(address, Reach.ANY)


@pytest.mark.parametrize(
    "address",
    [
        "http://a.org/i",
        "http://localhost.a.org/i",
        "http://127.0.0.1.a.org/i",
        "http://127.0.0.1@a.org/i",
        "http://a.org\\@127.0.0.1/i",
        "http://2130706433/i",
        "https://a.org\\b/i",
        "http://10.0.0.1/i",
        "ftp://127.0.0.1/i",
        "file:///etc/passwd",
        "HTTPS:/i",
        "https://a.org/a b",
        "https://a.org/\n",
        "https://[::1/i",
        "https://a.org:99999/i",
        "index.json",
        "",
    ],
)
def test_everything_else_is_refused(address):
    with pytest.raises(DataError) as caught:
        check_address(address, Reach.ANY)
    assert in_english(caught.value.title).endswith(".")


def test_a_redirect_on_the_same_footing_is_followed_with_its_range(make_shards, server, cache):
    raw, shard = make_shard()
    name = shard_name(shard.sha256)
    server.scripts[name] = [status(302, Location="/moved")]
    server.scripts["moved"] = [ranged(raw, send_at_most=1000), ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert server.asked[-1] == ("moved", "bytes=1000-")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://192.0.2.1/x", "not https"),
        ("ftp://127.0.0.1/x", "not https"),
        ("file:///etc/passwd", "not a web address"),
        ("http://127.0.0.1:80@192.0.2.1/", "not a web address"),
    ],
)
def test_a_redirect_to_another_scheme_or_to_plain_http_is_refused(make_shards, server, target, said):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [status(302, Location=target)]
    assert_failed(fetch(make_shards(), shard), said)
    assert len(server.asked) == 1


@pytest.mark.parametrize("location", [{"Location": ""}, {}])
def test_redirects_in_a_circle_end(make_shards, server, location):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [status(301, **location)]
    assert_failed(fetch(make_shards(), shard), "redirects too often")
    assert len(server.asked) == 6


def test_no_password_and_no_proxy_of_this_computer_is_used_on_loopback(
    make_shards, server, cache, monkeypatch, tmp_path
):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:9")
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert not any("Authorization" in headers for headers in server.headers_seen)


def test_a_server_without_a_good_certificate_is_refused(server, https_server, cache):
    address, _ = https_server
    shards = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK)
    shards._downloads.index_address = f"{address}/index.json"
    assert_failed(fetch(shards, make_shard()[1]), "cannot be verified")
    shards.close()


@pytest.fixture
def public_shards(https_server, cache, monkeypatch):
    """Shards from a server whose name is not this computer's."""
    address, certificate = https_server
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("no_proxy", "*")
    shards = HttpShards(
        cache, cache.parent / "notes", **ROOMY, patience=QUICK, network=Network(lambda _host, _port: ["127.0.0.1"])
    )
    shards._downloads.index_address = address.replace("127.0.0.1", "data.example.org") + "/index.json"
    yield shards
    shards.close()


def test_a_server_with_a_good_certificate_is_read_over_https(server, public_shards, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    assert_arrived(fetch(public_shards, shard), cache, raw, shard)


def test_a_redirect_from_https_to_this_computer_is_refused(server, public_shards):
    shard = make_shard()[1]
    server.scripts[shard_name(shard.sha256)] = [status(302, Location="http://127.0.0.1:1/control")]
    assert_failed(fetch(public_shards, shard), "data.example.org", "redirects to an address on this computer")
