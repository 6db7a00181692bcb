"""A TUF repository with packs on a real web server, whose publisher can also publish what is wrong."""

import contextlib
import functools
import http.server
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from small_packs import publish

ROLES = {Root.type: Root, Targets.type: Targets, Snapshot.type: Snapshot, Timestamp.type: Timestamp}


class PackRepository:
    """`folder` has metadata and targets; `root` is the root of trust of a build."""

    def __init__(self, folder):
        self.folder = Path(folder)
        (self.folder / "metadata").mkdir(parents=True)
        (self.folder / "targets").mkdir()
        self.keys = {role: CryptoSigner.generate_ed25519() for role in ROLES}
        self.valid = timedelta(days=30)
        self.files, self.version = {}, 0
        root = Root(consistent_snapshot=True)
        for role, key in self.keys.items():
            root.add_key(key.public_key, role)
        self._write(Root.type, root, "1.root.json", 1)

    @property
    def root(self):
        return (self.folder / "metadata/1.root.json").read_bytes()

    def publish(self, wheels_folder, list_name, *packs):
        """Write and sign the packs' list and wheels."""
        for name in publish(self.folder, wheels_folder, list_name, *packs):
            self.add(name)
        self.sign()

    def add(self, name):
        self.files[name] = TargetFile.from_file(name, str(self.folder / "targets" / name))

    def sign(self):
        self.version += 1
        v = self.version
        self._write(Targets.type, Targets(targets=self.files), f"{v}.targets.json", v)
        self._write(Snapshot.type, Snapshot(meta={"targets.json": MetaFile(v)}), f"{v}.snapshot.json", v)
        self._write(Timestamp.type, Timestamp(snapshot_meta=MetaFile(v)), "timestamp.json", v)

    def saved(self, place):
        """A copy of the folder as it is now."""
        return Path(shutil.copytree(self.folder, place))

    def restore(self, place, *parts):
        """Put a copy back, or only some files of it."""
        for part in parts or ("metadata", "targets"):
            if (place / part).is_dir():
                shutil.copytree(place / part, self.folder / part, dirs_exist_ok=True)
            else:
                shutil.copyfile(place / part, self.folder / part)

    def _write(self, role, signed, name, version):
        signed.version, signed.expires = version, datetime.now(UTC).replace(microsecond=0) + self.valid
        made = Metadata(signed)
        made.sign(self.keys[role])
        made.to_file(str(self.folder / "metadata" / name))


class _Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path.lstrip("/"), self.headers.get("Range")))
        super().do_GET()

    def log_message(self, *_):
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


@contextlib.contextmanager
def pack_server(folder):
    """A repository at `address`; `asked` has the paths that were asked for, with their ranges."""
    repository = PackRepository(folder)
    with _Server(("127.0.0.1", 0), functools.partial(_Handler, directory=repository.folder)) as server:
        server.asked = repository.asked = []
        repository.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield repository
        finally:
            server.shutdown()
            thread.join()
