"""A public project cannot make a volunteer's computer ask itself or its own network, whatever it names.

Two listening sockets on loopback have the part of the private server: not one connection may reach them. Names are
resolved by the test; the server on the internet is a real one with TLS, dialled at an address that is made up.
"""

import contextlib
import hashlib
import socket
from dataclasses import replace
from functools import partial

import pytest
from tuf.api.exceptions import DownloadError

import manifests
from downloads import LENGTH, QUICK, ROOMY, Posted, assert_arrived, assert_failed, fetch, make_index, make_shard
from english import in_english
from fakes import make_project
from skep.adapters.net.catalogue import FileCatalogue, fetch_over_web
from skep.adapters.net.connections import Network
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.net.web import Stop, TryAgain, Web
from skep.adapters.process.programs import UpdateSource
from skep.adapters.storage import signing
from skep.core.errors import DataError, ManifestError
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef
from skep.core.project.shards import shard_name
from skep.core.session.messages import IndexArrived
from skep.core.text import verbatim
from skep.services.doctor import network as doctor
from skep.services.updating import Updates
from web_of_faults import ranged, status, whole

SITE, HERE = "data.example.org", "93.184.215.14"
"""The name of the server, for which its certificate is, and its address."""
PEER_ID = "QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy"
SEED = f"/dns4/seed1.example.org/tcp/443/p2p/{PEER_ID}"

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fd00::1",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::192.168.1.1",
    "2002:7f00:1::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
]
"""Addresses to which a name may resolve."""

SPELLED = [
    *(f"[{each}]" if ":" in each else each for each in PRIVATE),
    "localhost",
    "LocalHost",
    "localhost.",
    "me.localhost",
    "router",
    "nas.local",
    "NAS.LOCAL.",
    "metadata.google.internal",
    "router.home.arpa",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0X7F.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.1%00",
    "%6cocalhost",
    "127%2e0.0.1",
    "[::1%25lo]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[v1.localhost]",
    "[127.0.0.1]",
    "a.example@127.0.0.1",
    "127.0.0.1\\@a.example",
    "a.example\\.127.0.0.1",
    "127\u30020\u30020\u30021",
    "\uff11\uff12\uff17.0.0.1",
    "\u0661\u0662\u0667.0.0.1",
    "\u24dbocalhost",
    "127.0.0.1\t",
    "127.0.0.1\n.example.org",
    "",
]
"""Hosts in an address."""
OTHER_SCHEMES = ["http://127.0.0.1:{port}/", "http://localhost:{port}/", "HTTP://[::1]:{port}/", "//127.0.0.1:{port}/"]


def test_there_are_enough_of_them():
    assert len({*PRIVATE, *SPELLED, *OTHER_SCHEMES}) >= 80


class Private:
    """Sockets on 127.0.0.1 and, where there is IPv6, ::1, that listen at one port."""

    def __init__(self, stack):
        self._listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0)))]
        self.port = self._listening[0].getsockname()[1]
        with contextlib.suppress(OSError):
            six = socket.create_server(("::1", self.port), family=socket.AF_INET6)
            self._listening.append(stack.enter_context(six))
        for each in self._listening:
            each.setblocking(False)

    @property
    def reached(self):
        """Whether anything has connected. The kernel has taken a connection before `connect` returns."""
        for each in self._listening:
            with contextlib.suppress(BlockingIOError):
                each.accept()[0].close()
                return True
        return False


@pytest.fixture
def private():
    with contextlib.ExitStack() as stack:
        yield Private(stack)


class Internet:
    """Resolves names by `names`, each to its answers one after another, and leads HERE to the test's server."""

    def __init__(self, port):
        self.names, self.asked, self.dialled = {SITE: [[HERE]]}, [], []
        self._port = port

    def look_up(self, host, _port):
        self.asked.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def dial(self, place, timeout, **options):
        self.dialled.append(place)
        target = ("127.0.0.1", self._port) if place[0] == HERE else place
        return socket.create_connection(target, timeout)

    @property
    def network(self):
        return Network(self.look_up, self.dial)


@pytest.fixture
def internet(server, https_server, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(https_server[1]))
    monkeypatch.setenv("no_proxy", "*")
    return Internet(server.server_address[1])


@pytest.fixture
def site(server):
    """The address of the server on the internet."""
    return f"https://{SITE}:{server.server_address[1]}"


@pytest.fixture
def web(internet):
    return Web(QUICK, Stop(), Reach.GLOBAL, network=internet.network)


def refused(web, address):
    with pytest.raises(DataError) as caught:
        web.read(address, verbatim("a file"), 1000)
    assert not isinstance(caught.value, TryAgain)
    for words in (caught.value.title, caught.value.hint):
        assert in_english(words).endswith(".")
    return in_english(caught.value.title)


# --- addresses and names


@pytest.mark.parametrize("host", SPELLED)
def test_a_host_is_refused_however_it_is_spelled(private, monkeypatch, host):
    monkeypatch.setenv("no_proxy", "*")
    refused(Web(QUICK, Stop(), Reach.GLOBAL), f"https://{host}:{private.port}/x")  # the system resolves
    assert not private.reached


@pytest.mark.parametrize("address", OTHER_SCHEMES)
def test_plain_http_is_refused_here_too(private, address):
    refused(Web(QUICK, Stop(), Reach.GLOBAL), address.format(port=private.port))
    assert not private.reached


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_into_a_private_network_is_refused(web, internet, private, address):
    internet.names["evil.example.org"] = [[address]]
    assert address in refused(web, f"https://evil.example.org:{private.port}/x")
    assert internet.dialled == []
    assert not private.reached


def test_a_name_that_is_first_global_and_then_private_is_dialled_where_it_was_checked(web, internet, private, server):
    server.scripts["x"] = [whole(b"hello")]
    internet.names[SITE] = [[HERE], ["127.0.0.1"]]
    address = f"https://{SITE}:{private.port}/x"
    assert web.read(address, verbatim("a file"), 1000) == b"hello"
    assert internet.asked == [SITE]
    assert internet.dialled == [(HERE, private.port)]
    assert "127.0.0.1" in refused(web, address)
    assert internet.dialled == [(HERE, private.port)]
    assert not private.reached


def test_of_several_addresses_the_global_ones_are_dialled(web, internet, server, site):
    server.scripts["x"] = [whole(b"hello")]
    internet.names[SITE] = [["127.0.0.1", "::1", HERE, "10.0.0.1"]]
    assert web.read(f"{site}/x", verbatim("a file"), 1000) == b"hello"
    assert [host for host, _ in internet.dialled] == [HERE]


def test_the_next_address_is_dialled_when_one_does_not_answer(web, internet, server, site):
    server.scripts["x"] = [whole(b"hello")]
    gone = "93.184.215.15"
    dial = internet.dial

    def dial_some(place, timeout, **options):
        if place[0] == gone:
            internet.dialled.append(place)
            raise ConnectionRefusedError
        return dial(place, timeout, **options)

    internet.names[SITE] = [[gone, HERE]]
    patient = Web(QUICK, Stop(), Reach.GLOBAL, network=Network(internet.look_up, dial_some))
    assert patient.read(f"{site}/x", verbatim("a file"), 1000) == b"hello"
    assert [host for host, _ in internet.dialled] == [gone, HERE]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (ConnectionRefusedError(), "cannot be reached"),
        (TimeoutError(), "does not answer"),
        (socket.gaierror(), "cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_dialled_is_said_as_before(failure, said, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")

    def fail(*_, **_more):
        raise failure

    network = Network(fail) if isinstance(failure, socket.gaierror) else Network(lambda *_: [HERE], fail)
    web = Web(QUICK, Stop(), Reach.GLOBAL, network=network)
    with pytest.raises(TryAgain) as caught:
        web.read(f"https://{SITE}/x", verbatim("a file"), 1000)
    assert said in in_english(caught.value.title)


# --- redirects


@pytest.mark.parametrize(
    "location",
    [
        *(f"https://{host}:{{port}}/x" for host in SPELLED if host.isascii() and host.isprintable() and host),
        *OTHER_SCHEMES,
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/x",
        "gopher://127.0.0.1:{port}/x",
        "unix:///run/docker.sock",
    ],
)
def test_a_redirect_away_from_the_internet_is_refused(web, internet, private, server, site, location):
    server.scripts["x"] = [status(302, Location=location.format(port=private.port))]
    refused(web, f"{site}/x")
    assert len(server.asked) == 1
    assert internet.dialled == [(HERE, server.server_address[1])]
    assert not private.reached


@pytest.mark.parametrize("address", PRIVATE)
def test_a_chain_of_redirects_to_a_name_in_a_private_network_is_refused(web, internet, private, server, site, address):
    internet.names["evil.example.org"] = [[address]]
    server.scripts["x"] = [status(307, Location="/y")]
    server.scripts["y"] = [status(302, Location=f"https://evil.example.org:{private.port}/z")]
    assert address in refused(web, f"{site}/x")
    assert [name for name, _ in server.asked] == ["x", "y"]
    assert {host for host, _ in internet.dialled} == {HERE}
    assert not private.reached


# --- what a request tells the server


def test_tls_and_the_header_are_for_the_name_and_no_cookie_or_password_is_sent(
    web, internet, server, site, monkeypatch, tmp_path
):
    (tmp_path / "netrc").write_text(f"machine {SITE} login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.scripts["x"] = [status(302, Location=f"{site}/y", Set_Cookie="who=you; Path=/")]
    server.scripts["y"] = [whole(b"hello")]
    for _ in range(2):
        assert web.read(f"{site}/x", verbatim("a file"), 1000) == b"hello"
    assert len(server.headers_seen) == 4
    for headers in server.headers_seen:
        assert headers["Host"] == site.removeprefix("https://")
        assert not {"Cookie", "Authorization"} & headers.keys()


# --- projects


@pytest.fixture
def catalogue(tmp_path, internet):
    return FileCatalogue(tmp_path / "projects", fetch=partial(fetch_over_web, network=internet.network))


@pytest.fixture
def publish(server, site, tmp_path):
    """Puts a signed manifest with changes on the server on the internet; returns its address."""
    folder = tmp_path / "publisher"
    folder.mkdir()

    def put(**changes):
        path = manifests.signed(folder, **({"peers": [SEED]} | changes))
        server.scripts["tiny.json"] = [whole(path.read_bytes())]
        server.scripts["tiny.json.sig"] = [whole(signing.signature_path(path).read_bytes())]
        return f"{site}/tiny.json"

    put.folder = folder
    return put


NAMED = [
    *({"data__index": f"https://{host}/index.json"} for host in ("127.0.0.1", "[::1]", "localhost", "nas.local")),
    *({"data__index": f"https://{host}/index.json"} for host in ("2130706433", "127.1", "169.254.169.254", "router")),
    {"data__index": "http://127.0.0.1:{port}/index.json"},
    {"homepage": "https://192.168.1.1/reboot"},
    {"homepage": "http://localhost:{port}/"},
    {"recipe": manifests.lora(), "recipe__base__url": "https://10.0.0.1/base.safetensors"},
    *({"peers": [SEED, f"/ip4/{host}/tcp/22/p2p/{PEER_ID}"]} for host in ("127.0.0.1", "10.0.0.1", "100.64.0.1")),
    *({"peers": [SEED, f"/ip6/{host}/tcp/22/p2p/{PEER_ID}"]} for host in ("::1", "fd00::1", "::ffff:127.0.0.1")),
    *({"peers": [f"/dns4/{host}/tcp/22/p2p/{PEER_ID}"]} for host in ("localhost", "router", "nas.local", "127.1")),
]


@pytest.mark.parametrize("changes", NAMED)
def test_a_manifest_from_the_internet_that_names_a_private_host_is_refused(catalogue, publish, private, changes):
    filled = {
        name: value.format(port=private.port) if isinstance(value, str) else value for name, value in changes.items()
    }
    address = publish(**filled)
    with pytest.raises(ManifestError) as caught:
        catalogue.add(address)
    assert "is not on the internet" in in_english(caught.value.title)
    assert "add the project from there" in in_english(caught.value.hint)
    assert list(catalogue.projects()) == []
    # a person who has it as a file has chosen to
    assert catalogue.add(str(publish.folder / "manifest.json")).reach is Reach.ANY
    assert not private.reached


def test_a_manifest_whose_server_is_private_is_refused(catalogue, internet, private):
    internet.names["evil.example.org"] = [["127.0.0.1"]]
    with pytest.raises(ManifestError) as caught:
        catalogue.add(f"https://evil.example.org:{private.port}/tiny.json")
    assert "its name leads to 127.0.0.1" in in_english(caught.value.title)
    assert not private.reached


def test_a_project_from_the_internet_is_added_and_its_data_fetched(catalogue, publish, internet, server, site, cache):
    raw, shard = make_shard()
    index = make_index(shard)
    server.scripts["index.json"] = [whole(index)]
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    digest = hashlib.sha256(index).hexdigest()
    project = catalogue.add(
        publish(data__index=f"{site}/index.json", data__sha256=digest, recipe__sequence_length=LENGTH)
    )
    assert project.reach is Reach.GLOBAL
    shards, posted = (
        HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK, network=internet.network),
        Posted(),
    )
    shards.fetch_index(project, posted)
    assert isinstance(posted.answer(), IndexArrived)
    assert_arrived(fetch(shards, shard, project.reach), cache, raw, shard)
    shards.close()
    assert {host for host, _ in internet.dialled} == {HERE}


def public(port):
    """A project from the internet whose manifest names this computer: one that an earlier skep has taken."""
    text = manifests.raw(data__index=f"https://127.0.0.1:{port}/index.json")
    return replace(make_project(manifest=text), source="https://example.org/tiny.json")


@pytest.mark.parametrize("size", [0, 1000])
def test_no_index_and_no_file_of_a_public_project_is_fetched_from_this_computer(private, cache, size):
    shards, posted = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK), Posted()
    shards.fetch_index(public(private.port), posted)
    assert_failed(posted.answer(), "127.0.0.1", "not on the internet")
    file = FileRef("tokenizer", "a" * 64, size, f"https://127.0.0.1:{private.port}/tokenizer.json")
    assert_failed(fetch(shards, file, Reach.GLOBAL), "127.0.0.1", "not on the internet")
    shards.close()
    assert not private.reached


def test_nor_is_it_asked_by_the_doctor(private):
    with pytest.raises(DataError):
        list(doctor.data(public(private.port), ""))
    assert not private.reached


def test_updates_come_from_the_internet_only(home, private):
    source = UpdateSource(f"https://127.1:{private.port}/", b"{}")
    updates = Updates(home, source, folder=None, proxy=lambda: "", keep_free=lambda: 0.0)
    fetcher = updates._repository()._fetcher
    with pytest.raises(DownloadError):
        list(fetcher.fetch(f"{source.address}metadata/1.root.json"))
    assert not private.reached
