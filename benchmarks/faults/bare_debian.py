"""A bare Debian with the app's .deb, made by debootstrap as root, in which the app runs beside this system."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from newcomer import CannotRun, bare

from families import alive, kill
from faults.rows import ROOT
from terminals import devote
from tray_desktops import Desktop

RELEASES = {"Debian 12": "bookworm", "Debian 13": "trixie"}
USER = "volunteer"
HOME = f"/home/{USER}/skep"
SECONDS = 1200.0
"""Within which a command ends on a very busy computer."""
ENVIRON = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Debian:
    """The system in `root`, with skep in `programs`."""

    def __init__(self, root: Path) -> None:
        self.root, self.programs = root, root / "usr" / "lib" / "skep"

    def command(self, *words: str, user: str = "root") -> list[str]:
        """In process and mount namespaces that end with it."""
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", *self._entered(user, *words)]

    def beside(self, *words: str) -> list[str]:
        """As root and in a mount namespace alone: the command is the process itself, and /tmp is that of this system."""
        beside = f"mount --rbind /tmp {shlex.quote(str(self.root / 'tmp'))}"
        return ["unshare", "--mount", *self._entered("root", *words, first=beside)]

    def _entered(self, user: str, *words: str, first: str = "true") -> list[str]:
        root = shlex.quote(str(self.root))
        mounts = f"{first} && mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm"
        return ["sh", "-c", f'{mounts} && exec chroot --userspec={user}:{user} {root} "$@"', "sh", *words]

    def run(self, *words: str, user: str = "root") -> str:
        """What the command printed. Raises RuntimeError and subprocess.TimeoutExpired."""
        environ = ENVIRON | {"HOME": f"/home/{user}" if user != "root" else "/root"}
        done = subprocess.run(
            self.command(*words, user=user), env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{words[0]} in {self.root}: {(done.stdout + done.stderr)[-1000:]}")
        return done.stdout

    def skep(self, *verb: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.run("skep", "--home", HOME, "--json", *verb, user=USER))
        return said

    @contextlib.contextmanager
    def app(self, screen: Desktop) -> Iterator[subprocess.Popen[bytes]]:
        environ = ENVIRON | {"HOME": f"/home/{USER}", "DISPLAY": screen.environ["DISPLAY"], "QT_QPA_PLATFORM": "xcb"}
        command = self.command("skep-gui", "--home", HOME, user=USER)
        with subprocess.Popen(command, env=environ) as process:
            family = [psutil.Process(process.pid)]
            try:
                yield process
            finally:
                with contextlib.suppress(psutil.Error):  # where it has ended by itself
                    family += family[0].children(recursive=True)
                for each in alive(family):
                    with contextlib.suppress(psutil.Error):
                        if each.name() == "skep-gui":
                            each.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                kill(alive(family))


@contextlib.contextmanager
def installed(release: str, log: Path) -> Iterator[Debian]:
    """A bare Debian with the app's .deb, and a user whose home goes on practising. Raises RuntimeError."""
    try:
        fresh = bare(release, log)
    except CannotRun as reason:
        raise RuntimeError(str(reason)) from None
    root = fresh.with_name(f"debian-{release}")
    shutil.rmtree(root, ignore_errors=True)
    debian = Debian(fresh.rename(root))
    try:
        install(debian)
        yield debian
    finally:
        shutil.rmtree(root)


def install(debian: Debian) -> None:
    """Install the .deb as a person does, with what it depends on, and give the user a home that goes on practising."""
    debs = list((ROOT / "dist").glob("skep-app_*.deb"))
    if len(debs) != 1:
        raise RuntimeError(f"there is not one .deb of the app in {ROOT / 'dist'} but {len(debs)}")
    shutil.copy(debs[0], debian.root / "skep-app.deb")
    debian.run("apt-get", "update", "-qq")
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "/skep-app.deb", "fonts-dejavu-core")
    debian.run("useradd", "--create-home", USER)
    home = debian.root / HOME[1:]
    devote(home)
    (home / "window.ini").write_text("[General]\nfirst-run-done=done\nactive=practice\n")
    debian.run("chown", "--recursive", f"{USER}:{USER}", HOME)
