"""The .deb in a bare Debian 12: installed, tried, upgraded and removed, with nothing left but a person's own data."""

import os
import shutil
import subprocess
from pathlib import Path

import deb
import pytest
import stage

ROOT = Path(__file__).resolve().parents[2]
MIRROR = os.environ.get("SKEP_DEBIAN_MIRROR", "http://deb.debian.org/debian")
BARE = ROOT / "build" / "package" / "debian-12"
MADE = ROOT / "dist" / f"skep_{stage.VERSION}_amd64.deb"
WITHOUT_ASKING = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

pytestmark = [pytest.mark.built, pytest.mark.timeout(1800)]


def run(*command, **options):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def bare():
    """A Debian 12 of its own, changed by nothing that was here before."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a Debian of its own needs root and debootstrap")
    if not (BARE / "etc" / "debian_version").exists():
        shutil.rmtree(BARE, ignore_errors=True)
        BARE.parent.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "bookworm", BARE, MIRROR)
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


def inside(root, *command, user="root", **environ):
    """A command in the Debian, in process and mount namespaces of its own, so that nothing of it is left."""
    shell = f'mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm; exec chroot --userspec={user} {root} "$@"'
    return run(
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh", *command,
        env=WITHOUT_ASKING | environ,
    )  # fmt: skip


def everything(root):
    """Every path below usr, etc, opt, var and srv, but for what apt and dpkg keep of their own work."""
    found = set()
    for top in ("usr", "etc", "opt", "srv", "var"):
        found |= {str(path.relative_to(root)) for path in (root / top).rglob("*")}
    own = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "var/lib/systemd")
    return {path for path in found if not path.startswith(own)}


def test_it_installs_works_upgrades_and_leaves(bare, tmp_path):
    assert MADE.stat().st_size <= deb.LIMIT
    inside(bare, "apt-get", "update", "-qq")
    names = ", ".join(deb.DEPENDS)
    # what it needs comes first, so that what is compared is its own
    inside(
        bare, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *(each.split()[0] for each in deb.DEPENDS)
    )
    before = everything(bare)
    shutil.copy(MADE, bare / "skep.deb")
    inside(bare, "dpkg", "--install", "/skep.deb")
    assert names.split(", ")[0] in run("dpkg-deb", "--field", MADE, "Depends")
    inside(bare, "useradd", "--create-home", "volunteer")
    before |= everything(bare) - {path for path in everything(bare) if "skep" in path}
    said = inside(bare, "skep", "self-test", user="volunteer:volunteer", HOME="/home/volunteer")
    assert "Everything works." in said
    assert "built from" in said
    missing = inside(
        bare, "sh", "-c", "find /usr/lib/skep -name '*.so*' -path '*Qt*' -exec ldd {} + 2>&1 | grep 'not found' || true"
    )
    assert "libxcb" not in missing

    inside(
        bare, "skep", "settings", "set", "compute.share_away", "30", user="volunteer:volunteer", HOME="/home/volunteer"
    )
    data = bare / "home/volunteer/.local/share/skep/settings.toml"
    kept = data.read_text()
    inside(bare, "dpkg", "--install", newer(bare, tmp_path))
    assert "9.9" in inside(bare, "dpkg-query", "-W", "skep")
    assert data.read_text() == kept
    inside(bare, "dpkg", "--remove", "skep")
    inside(bare, "dpkg", "--purge", "skep")
    assert {path for path in everything(bare) - before if "skep" in path} == set()
    assert data.read_text() == kept


def newer(bare, folder):
    """The same package as a later version would be."""
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
    assert not licences.exists()  # only share was unpacked here


def test_lintian_finds_nothing_that_is_not_explained():
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    run("lintian", "--allow-root", "--fail-on", "error,warning", MADE)


def test_the_licence_of_everything_is_inside(frozen):
    index = (frozen / "licenses" / "INDEX.txt").read_text()
    for name in ("torch", "hivemind", "PySide6_Essentials", "Python", "transformers"):
        assert f"\n{name} · " in index
    assert (frozen / "licenses" / "skep.txt").read_text() == (ROOT / "LICENSE").read_text()
