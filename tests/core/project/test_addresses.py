import pytest

from skep.core.project.addresses import beside, host_of, is_loopback, is_web_address


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
