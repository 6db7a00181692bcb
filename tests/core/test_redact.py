"""Private data in logs is masked; all other text is kept."""

import base64
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skep.core.redact import redact

PEER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
NEW_PEER = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # addresses
        ("peer at 203.0.113.7:31337", "peer at [address]:31337"),
        ("It was 203.0.113.7.", "It was [address]."),
        ("10.0.0.1,192.168.1.20", "[address],[address]"),
        (f"/ip4/203.0.113.7/tcp/31337/p2p/{PEER}", f"/ip4/[address]/tcp/31337/p2p/{PEER}"),
        (f"/ip6/2001:db8::7/tcp/443/p2p/{NEW_PEER}", f"/ip6/[address]/tcp/443/p2p/{NEW_PEER}"),
        ("http://[2001:db8::7]:80/x", "http://[[address]]:80/x"),
        ("fe80::1%eth0 is local", "[address] is local"),
        ("::ffff:203.0.113.7", "[address]"),
        ("2001:DB8:0:0:0:0:0:1", "[address]"),
        ("2001:db8:0:0:0:0:0:1:443", "[address]:443"),
        # secrets
        ("https://user:pa55@example.org/x", "https://[secret]@example.org/x"),
        ("https://example.org/x?token=abc&page=2", "https://example.org/x?token=[secret]&page=2"),
        ("https://example.org/x?page=2&X-Amz-Signature=0a1b", "https://example.org/x?page=2&X-Amz-Signature=[secret]"),
        ("https://example.org/?access_token=abc#top", "https://example.org/?access_token=[secret]#top"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [secret]"),
        # keys
        ("key ed25519:" + base64.b64encode(bytes(range(32))).decode(), "key ed25519:[key]"),
        ("signed by " + base64.b64encode(bytes(range(100, 164))).decode(), "signed by [key]"),
        ("-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\nafter", "[key]\nafter"),
        ("cut off -----BEGIN PRIVATE KEY-----\nMIIabc", "cut off [key]"),
        # the user's folder
        ("open /home/anna/.config/x", "open ~/.config/x"),
        ("in /home/anna.", "in /home/anna."),
        ("'/home/anna'", "'~'"),
        ("file:///home/anna/x", "file://~/x"),
    ],
)
def test_it_masks(text, expected):
    assert redact(text, "/home/anna") == expected


@pytest.mark.parametrize(
    "text",
    [
        "Listening on 127.0.0.1:80, 127.8.9.1, ::1 and 0.0.0.0",
        "/ip4/127.0.0.1/tcp/31337/p2p/" + PEER,
        "::ffff:127.0.0.1",
        "/home/annabel/x and /home/anna-two",
        "torch 2.13.0, numpy 2.3.5 at 12:30:45 and 2026-01-02T03:04:05",
        "1.2.3.4.5 and 999.1.1.1",
        "std::vector and a: b: c",
        "sha256 " + "0123456789abcdef" * 4,
        "/opt/venv/lib/python3.11/site-packages/hivemind/averaging/averager.py",
        "shard 3 of 8, epoch=12, keyboard=yes",
        "https://example.org/a?page=2",
        "",
    ],
)
def test_it_keeps(text):
    assert redact(text, "/home/anna") == text


@pytest.mark.parametrize("home", ["", "/", "\\"])
def test_a_home_that_is_no_folder_masks_nothing(home):
    assert redact("/usr/bin", home) == "/usr/bin"


@given(st.ip_addresses(), st.sampled_from(["{}", "at {}:1 and", "({})", "/ip4/{}/tcp/1", "x={},", "{} {}"]))
def test_no_foreign_address_is_left(address, frame):
    masked = redact(frame.replace("{}", str(address)))
    mapped = getattr(address, "ipv4_mapped", None) or address
    if not mapped.is_loopback and not address.is_unspecified:
        assert str(address) not in masked


@given(st.binary(min_size=32, max_size=64), st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]))
@example(bytes(5) + b"\x10\x98" + bytes(40) + b"\xd4", base64.b64encode)  # with the letters of a peer id inside
def test_no_random_key_is_left(raw, encode):
    encoded = encode(raw).decode()
    if all(re.search(kind, encoded) for kind in ("[A-Z]", "[a-z]", "[0-9]")):
        assert encoded not in redact(f"<{encoded}>")


@given(st.text(alphabet="abcQ0123456789:./@?&=%-+[] \n") | st.text(), st.sampled_from(["", "/home/anna"]))
def test_any_text_is_masked_once_and_for_all(text, home):
    once = redact(text, home)
    assert redact(once, home) == once
