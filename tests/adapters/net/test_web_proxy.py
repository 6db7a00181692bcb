"""Downloads through the user's proxy: a real one on loopback, whose target the test sets."""

import socket
import socketserver
import threading

import pytest

from downloads import QUICK, ROOMY, assert_arrived, assert_failed, fetch, make_shard
from english import in_english
from skep import bootstrap
from skep.adapters.net.catalogue import fetch_over_web
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.errors import ManifestError, SettingsError
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef
from skep.core.project.shards import shard_name
from skep.core.settings.settings import parse
from web_of_faults import ranged, status

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"


class Proxy(socketserver.ThreadingTCPServer):
    """`asked` has the request lines it received. It tunnels to `target`, a port of this computer, or refuses."""

    daemon_threads = True
    block_on_close = False
    target = None

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.asked = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Tunnel(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self):
        self.server.asked.append(self.rfile.readline().decode().strip())
        while self.rfile.readline().strip():
            pass
        if self.server.target is None:
            self.wfile.write(REFUSAL)
            return
        with socket.create_connection(("127.0.0.1", self.server.target), 20) as beyond:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pump, args=(beyond, self.connection), daemon=True)
            back.start()
            pump(self.connection, beyond)
            back.join(20)


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.fixture
def proxy():
    made = Proxy()
    yield made
    made.shutdown()
    made.server_close()


def shards_through(proxy, cache, address):
    made = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK, proxy=lambda: proxy)
    made._downloads.index_address = address
    return made


def test_downloads_go_through_the_proxy_that_the_person_named(
    proxy, server, https_server, cache, monkeypatch, make_shards
):
    address, certificate = https_server
    proxy.target = server.server_address[1]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("https_proxy", "http://192.0.2.1:9")  # the setting has precedence
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    shards = shards_through(proxy.address, cache, address.replace("127.0.0.1", "data.example.org") + "/index.json")
    try:
        assert_arrived(fetch(shards, shard), cache, raw, shard)
    finally:
        shards.close()
    assert [line.split()[:2] for line in proxy.asked] == [["CONNECT", f"data.example.org:{proxy.target}"]]


def test_a_proxy_that_refuses_is_named(proxy, cache):
    shards = shards_through(proxy.address, cache, "https://data.example.org/index.json")
    told = fetch(shards, make_shard()[1])
    shards.close()
    assert_failed(told, "proxy does not reach", "data.example.org")
    assert proxy.address.removeprefix("http://") in in_english(told.problem.hint)


def test_a_server_on_this_computer_is_asked_directly(proxy, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    shards = shards_through(proxy.address, cache, f"{server.address}/index.json")
    try:
        assert_arrived(fetch(shards, shard), cache, raw, shard)
    finally:
        shards.close()
    assert proxy.asked == []


def test_manifests_are_fetched_through_it_too(proxy, home):
    SettingsFile(home.settings_file).save({"network.proxy": proxy.address})
    with pytest.raises(ManifestError) as caught:
        bootstrap.catalogue(home).add("https://manifests.example.org/tiny.json")
    assert "proxy" in in_english(caught.value.title)
    assert proxy.asked[0].split()[:2] == ["CONNECT", "manifests.example.org:443"]


def test_a_proxy_of_the_environment_is_named_as_such(proxy, monkeypatch):
    monkeypatch.setenv("https_proxy", proxy.address)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(ManifestError) as caught:
        fetch_over_web("https://manifests.example.org/tiny.json", "the manifest", 1000)
    assert "proxy" in in_english(caught.value.title)


@pytest.mark.parametrize("text", ["socks5://proxy.example.org:1080", "proxy.example.org:3128", "http://"])
def test_what_is_no_proxy_of_the_web_is_refused(text):
    with pytest.raises(SettingsError):
        parse("network.proxy", text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "[::1]", "localhost", "intranet", "nas.local", "192.168.1.1"])
def test_a_proxy_is_not_asked_for_what_a_public_project_may_not_reach(proxy, cache, host):
    file = FileRef("tokenizer", "a" * 64, 0, f"https://{host}/tokenizer.json")
    shards = shards_through(proxy.address, cache, "")
    told = fetch(shards, file, Reach.GLOBAL)
    shards.close()
    assert_failed(told, "not on the internet")
    assert proxy.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "[fd00::1]", "metadata.google.internal"])
def test_nor_for_what_a_server_behind_it_redirects_to(proxy, server, https_server, cache, monkeypatch, host):
    address, certificate = https_server
    proxy.target = server.server_address[1]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    server.scripts["tokenizer.json"] = [status(302, Location=f"https://{host}/latest")]
    there = address.replace("127.0.0.1", "data.example.org")
    shards = shards_through(proxy.address, cache, "")
    told = fetch(shards, FileRef("tokenizer", "a" * 64, 0, f"{there}/tokenizer.json"), Reach.GLOBAL)
    shards.close()
    assert_failed(told, "not on the internet")
    assert [line.split()[1] for line in proxy.asked] == [there.removeprefix("https://")]
