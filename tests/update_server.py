"""An update repository made by release_repo on a real web server, and small portable folders.

The programs in these are shell scripts that print their version, which is all that an update needs from them.
"""

import contextlib
import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

from skep.adapters.process.portable_folder import APP_DIR, PortableFolder
from skep.adapters.process.programs import CURRENT, PROGRAM, START, VERSIONS, UpdateSource
from skep.core.releases import archive_name
from skep.services.updating import Updates, this_kind

SCRIPT = Path(__file__).resolve().parents[1] / "packaging" / "release_repo.py"
PASSPHRASE = "a long enough passphrase"


def lay_version(versions, version, *, said=None, ballast=0):
    """A version's folder whose program prints the version `said`, with `ballast` files of 4 kB."""
    program = versions / version / PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho skep {said or version}\n")
    program.chmod(0o755)
    start = versions / version / START
    start.write_text('#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/usr/lib/skep/skep" "$@"\n')
    start.chmod(0o755)
    for number in range(ballast):
        (program.parent / f"ballast-{number}").write_bytes(os.urandom(4096))
    return versions / version


def lay_app(folder, version, **options):
    """A portable folder in `folder`."""
    app = folder / APP_DIR
    lay_version(app / VERSIONS, version, **options)
    (app / CURRENT).symlink_to(f"{VERSIONS}/{version}")
    (app / START).symlink_to(f"{CURRENT}/{START}")
    return app


def pack(folder, version, **options):
    """The path of a version's archive, created in `folder`."""
    made = folder / archive_name(version, *this_kind())
    staging = folder / f"staging-{version}"
    lay_app(staging, version, **options)
    subprocess.run(["tar", "-cJf", made, "-C", staging, APP_DIR], check=True)
    return made


def starts(app):
    """The version that the start program prints."""
    return subprocess.run([app / START, "--version"], capture_output=True, text=True, check=True).stdout.strip()


class UpdateServer:
    """`folder` is served at `address`; `requests` are the requested paths."""

    def __init__(self, folder, address, keys, requests):
        self.folder, self.address, self.keys, self.requests = folder, address, keys, requests

    def publish(self, *arguments, passphrase=PASSPHRASE):
        """Run the script as a publisher does."""
        return subprocess.run(
            [sys.executable, SCRIPT, "--keys", self.keys, "--to", self.folder, *arguments],
            env={**os.environ, "SKEP_RELEASE_PASSPHRASE": passphrase},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def root(self):
        """The root metadata that the first build contains."""
        return (self.folder / "metadata" / "1.root.json").read_bytes()

    def updates(self, home, app, running):
        return Updates(
            home,
            source=UpdateSource(self.address, self.root),
            folder=PortableFolder(app, running) if app else None,
            proxy=lambda: "",
            keep_free=lambda: 0.0,
        )


@contextlib.contextmanager
def update_server(folder):
    served, requests = folder / "served", []
    served.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=served)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield UpdateServer(served, f"http://127.0.0.1:{server.server_port}", folder / "keys", requests)
        finally:
            server.shutdown()
            thread.join()
