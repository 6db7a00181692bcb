from hivemind.p2p import P2P, PeerID

from skep.adapters.storage.identity import FileIdentity


def test_our_identity_is_the_one_hivemind_reads(tmp_path):
    identity = FileIdentity(tmp_path / "ours")
    assert str(PeerID.from_identity(identity.path.read_bytes())) == identity.peer_id


def test_hiveminds_identity_is_the_one_we_read(tmp_path):
    P2P.generate_identity(str(tmp_path / "theirs"))
    theirs = str(PeerID.from_identity((tmp_path / "theirs").read_bytes()))
    assert FileIdentity(tmp_path / "theirs").peer_id == theirs
