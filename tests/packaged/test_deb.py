"""The .deb in a bare Debian 12: installed, tried, upgraded and removed, with nothing left but the user's data."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import deb
import newcomer
import psutil
import pytest
import stage

from terminals import devote
from tray_desktops import desktop

ROOT = Path(__file__).resolve().parents[2]
BARE = ROOT / "build" / "package" / "debian-12"
MADE = ROOT / "dist" / f"skep_{stage.VERSION}_amd64.deb"
WITHOUT_ASKING = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

PERSON = "home/volunteer"
VOLUNTEER = "volunteer:volunteer"

pytestmark = [pytest.mark.built, pytest.mark.timeout(1800)]


def run(*command, **options):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def bare():
    """A new, unchanged Debian 12."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a Debian of its own needs root and debootstrap")
    if not (BARE / "etc" / "debian_version").exists():
        shutil.rmtree(BARE, ignore_errors=True)
        BARE.parent.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "bookworm", BARE, newcomer.mirror())
        _network(BARE)
    fresh = BARE.with_name("debian-12-used")
    shutil.rmtree(fresh, ignore_errors=True)
    run("cp", "-a", "--reflink=auto", BARE, fresh)
    yield fresh
    shutil.rmtree(fresh)


def _network(root):
    for file in (
        Path("/etc/resolv.conf"),
        *Path("/etc/apt/apt.conf.d").glob("*proxy*"),
        *Path("/etc/apt/apt.conf.d").glob("99*"),
    ):
        shutil.copy(file, root / file.relative_to("/"))


def entered(root, *command, user="root"):
    """The command line that runs `command` in the Debian, in new process and mount namespaces that end with it."""
    shell = f'mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm; exec chroot --userspec={user} {root} "$@"'
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh", *command]


def inside(root, *command, user="root", **environ):
    return run(*entered(root, *command, user=user), env=WITHOUT_ASKING | environ)


def as_volunteer(root, *command):
    return inside(root, *command, user=VOLUNTEER, HOME=f"/{PERSON}")


def everything(root):
    """Every path below usr, etc, opt, var and srv, except the files of apt and dpkg."""
    found = set()
    for top in ("usr", "etc", "opt", "srv", "var"):
        found |= {str(path.relative_to(root)) for path in (root / top).rglob("*")}
    own = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "var/lib/systemd")
    return {path for path in found if not path.startswith(own)}


@pytest.fixture(scope="module")
def installed(bare):
    """The Debian with skep and a user; and every path that existed before skep."""
    inside(bare, "apt-get", "update", "-qq")
    # the dependencies are installed first, so that the comparison shows only skep's files
    inside(
        bare, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *(each.split()[0] for each in deb.DEPENDS)
    )
    inside(bare, "useradd", "--create-home", "volunteer")
    before = everything(bare)
    shutil.copy(MADE, bare / "skep.deb")
    inside(bare, "dpkg", "--install", "/skep.deb")
    return bare, before


def test_it_works_where_nothing_else_is(installed):
    bare, _ = installed
    said = as_volunteer(bare, "skep", "self-test")
    assert "Everything works." in said
    assert "built from" in said


@contextlib.contextmanager
def app(root, screen, home):
    """The app on that screen, in the Debian; ended as at the end of a session."""
    environ = WITHOUT_ASKING | {"HOME": f"/{PERSON}", "DISPLAY": screen.environ["DISPLAY"], "QT_QPA_PLATFORM": "xcb"}
    command = entered(root, "skep-gui", "--home", home, user=VOLUNTEER)
    process = subprocess.Popen(command, env=environ)
    try:
        yield process
        (program,) = (
            each for each in psutil.Process(process.pid).children(recursive=True) if each.name() == "skep-gui"
        )
        program.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_the_app_joins_the_practice_swarm_there_and_quits_clean(installed):
    bare, _ = installed
    home = f"/{PERSON}/practising"
    devote(bare / home[1:])
    (bare / home[1:] / "window.ini").write_text("[General]\nfirst-run-done=done\nactive=practice\n")
    inside(bare, "chown", "--recursive", VOLUNTEER, f"/{PERSON}")

    def confirmed():
        return json.loads(as_volunteer(bare, "skep", "--home", home, "--json", "stats"))["all"]["confirmed"]["samples"]

    with desktop() as screen, app(bare, screen, home) as started:
        deadline = time.monotonic() + 300
        while not confirmed():
            assert started.poll() is None
            assert time.monotonic() < deadline
            time.sleep(1.0)
        family = psutil.Process(started.pid).children(recursive=True)
        window = screen.visible("skep")
        assert screen.picture(BARE.with_name("debian-12.png"))
    assert window
    assert not psutil.wait_procs(family, 5)[1]
    assert json.loads(as_volunteer(bare, "skep", "--home", home, "--json", "stats"))["all"]["pending"]["samples"] == 0


def test_it_is_upgraded_and_leaves_nothing_but_a_persons_data(installed, tmp_path):
    assert MADE.stat().st_size <= stage.EDITIONS["whole"].limit
    bare, before = installed
    as_volunteer(bare, "skep", "settings", "set", "compute.share_away", "30")
    data = bare / PERSON / ".local/share/skep/settings.toml"
    kept = data.read_text()
    inside(bare, "dpkg", "--install", newer(bare, tmp_path))
    assert "9.9" in inside(bare, "dpkg-query", "-W", "skep")
    assert data.read_text() == kept
    inside(bare, "dpkg", "--remove", "skep")
    inside(bare, "dpkg", "--purge", "skep")
    assert {path for path in everything(bare) - before if "skep" in path} == set()
    assert data.read_text() == kept


def newer(bare, folder):
    """The same package with a later version."""
    unpacked = folder / "newer"
    run("dpkg-deb", "--raw-extract", MADE, unpacked)
    control = unpacked / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {stage.VERSION}", "Version: 9.9"))
    run("dpkg-deb", "-Zzstd", "-z1", "--root-owner-group", "--build", unpacked, bare / "newer.deb")
    shutil.rmtree(unpacked)
    return "/newer.deb"


def test_the_menu_entry_and_the_software_centre_find_no_fault(tmp_path):
    share = tmp_path / "share"
    run("sh", "-c", f"dpkg-deb --fsys-tarfile {MADE} | tar -x -C {tmp_path} ./usr/share")
    share = tmp_path / "usr" / "share"
    run("desktop-file-validate", share / "applications" / f"{stage.APP_ID}.desktop")
    run("appstreamcli", "validate", "--no-net", "--explain", share / "metainfo" / f"{stage.APP_ID}.metainfo.xml")
    for size in stage.ICON_SIZES:
        assert (share / f"icons/hicolor/{size}x{size}/apps/{stage.APP_ID}.png").stat().st_size > 100
    for page in ("skep.1.gz", "skep-gui.1.gz"):
        assert (share / "man/man1" / page).is_file()
    completion = share / "bash-completion/completions/skep"
    assert "self-test" in run(
        "bash", "-c", f"source {completion}; COMP_WORDS=(skep self); COMP_CWORD=1; _shtab_skep; echo ${{COMPREPLY[@]}}"
    )
    licences = share.parent / "lib" / "skep" / "licenses"
    assert not licences.exists()  # only share was unpacked


def test_lintian_finds_nothing_that_is_not_explained():
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    run("lintian", "--allow-root", "--fail-on", "error,warning", MADE)


def test_the_licence_of_everything_is_inside(frozen):
    index = (frozen / "licenses" / "INDEX.txt").read_text()
    for name in ("torch", "hivemind", "PySide6_Essentials", "Python", "transformers"):
        assert f"\n{name} · " in index
    assert (frozen / "licenses" / "skep.txt").read_text() == (ROOT / "LICENSE").read_text()
