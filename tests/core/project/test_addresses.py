from ipaddress import ip_address

import pytest

from skep.core.project.addresses import (
    Reach,
    beside,
    host_of,
    is_global,
    is_local,
    is_loopback,
    is_web_address,
    may_be_global,
    reach_of,
    web_host,
)


@pytest.mark.parametrize(
    ("address", "fine"),
    [
        ("https://example.org/index.json", True),
        ("https://example.org:8443/index.json?v=2", True),
        ("http://localhost:8000/index.json", True),
        ("http://127.0.0.1/index.json", True),
        ("http://[::1]:8000/index.json", True),
        ("http://example.org/index.json", False),
        ("https://", False),
        ("https://example.org:eighty/", False),
        ("https://[::1/", False),
        ("https://user@example.org/", False),
        ("https://example.org\\@evil.org/", False),
        ("https://example.org/a b", False),
        ("file:///etc/passwd", False),
    ],
)
def test_only_https_is_a_web_address_and_http_on_this_computer_itself(address, fine):
    assert is_web_address(address) is fine


@pytest.mark.parametrize(
    ("host", "here"), [("localhost", True), ("127.8.9.1", True), ("::1", True), ("10.0.0.1", False)]
)
def test_loopback_is_this_computer(host, here):
    assert is_loopback(host) is here


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://example.org:8443/data/index.json?v=2#top", "https://example.org:8443/data/a.json"),
        ("https://example.org/index.json", "https://example.org/a.json"),
        ("https://example.org", "https://example.org/a.json"),
    ],
)
def test_a_file_beside_another_has_its_folder_and_no_query(address, expected):
    assert beside(address, "a.json") == expected


@pytest.mark.parametrize(
    ("address", "host"),
    [("/ip4/127.0.0.1/tcp/1/p2p/Qm", "127.0.0.1"), ("/dns4/example.org/tcp/1", "example.org"), ("/ip4", ""), ("", "")],
)
def test_the_host_of_a_multiaddress(address, host):
    assert host_of(address) == host


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "100.63.255.255",
        "100.128.0.0",
        "172.32.0.1",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "::ffff:93.184.215.14",
        "64:ff9b::93.184.215.14",
    ],
)
def test_an_address_on_the_internet_is_global(address):
    assert is_global(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.31.255.255",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:192.168.1.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:5db8:d70e::1",
        "4000::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_any_other_address_is_not(address):
    assert not is_global(ip_address(address))


@pytest.mark.parametrize(
    "host",
    ["example.org", "Example.ORG.", "a_b.example.org", "xn--bcher-kva.example", "93.184.215.14", "2606:2800:21f::1"],
)
def test_a_host_that_may_be_on_the_internet(host):
    assert may_be_global(host)
    assert not is_local(host)


LOCAL = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "intranet",
    "nas.local",
    "db.internal",
    "router.home.arpa",
    "127.0.0.1",
    "127.9.9.9.",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "::1",
    "fd00::1",
    "fe80::1",
]
NEITHER = [
    "127.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.0x1",
    "127.0.0.01",
    "example.123",
    "0.0.0.0",
    "192.0.2.1",
    "2002:5db8:d70e::1",
    "64:ff9b::10.0.0.1",
    "fe80::1%eth0",
    "2606:2800:21f::1%eth0",
    "127.0.0.1%2f",
    "%31%32%37.0.0.1",
    "a..b",
    "",
    ".",
    "\u0661\u0662\u0667.0.0.1",
]


@pytest.mark.parametrize("host", LOCAL)
def test_a_host_of_this_computer_or_its_network(host):
    assert is_local(host)
    assert not may_be_global(host)


@pytest.mark.parametrize("host", NEITHER)
def test_a_host_that_is_neither_is_never_used_for_a_public_project(host):
    assert not may_be_global(host)
    assert not is_local(host)


@pytest.mark.parametrize(
    ("source", "reach"),
    [
        ("/home/me/tiny.json", Reach.ANY),
        ("C:\\me\\tiny.json", Reach.ANY),
        ("http://127.0.0.1:8080/tiny.json", Reach.ANY),
        ("https://192.168.1.7/tiny.json", Reach.ANY),
        ("https://nas.local/tiny.json", Reach.ANY),
        ("https://example.org/tiny.json", Reach.GLOBAL),
        ("https://93.184.215.14/tiny.json", Reach.GLOBAL),
        ("https://2130706433/tiny.json", Reach.GLOBAL),
        ("https://[2002:5db8:d70e::1]/tiny.json", Reach.GLOBAL),
        ("https://[::1/tiny.json", Reach.GLOBAL),
        ("https://", Reach.GLOBAL),
    ],
)
def test_where_a_manifest_came_from_says_what_its_downloads_may_reach(source, reach):
    assert reach_of(source) is reach


def test_the_host_of_a_web_address():
    assert web_host("https://Example.org:8443/a") == "example.org"
    assert web_host("https://[::1]:8443/a") == "::1"
    assert web_host("https://[::1/") == web_host("/a") == ""
