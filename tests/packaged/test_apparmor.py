"""The AppArmor profile of the .debs: installed where it is understood, and removed with the package."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import stage

PROFILE = stage.LINUX / "apparmor"
ABI = Path("/etc/apparmor.d/abi/4.0")
"""There since AppArmor 4.0."""


@pytest.fixture
def system(tmp_path):
    """A system's root folder, on which the package was unpacked."""
    (tmp_path / "etc" / "apparmor.d").mkdir(parents=True)
    source = tmp_path / "usr" / "share" / "skep" / "apparmor"
    source.parent.mkdir(parents=True)
    shutil.copy(PROFILE, source)
    return tmp_path


EXPECTED = (
    'test "$*" = "--skip-kernel-load --skip-cache --base $DPKG_ROOT/etc/apparmor.d $DPKG_ROOT/usr/share/skep/apparmor"'
)


def maintain(system, script, *arguments, parser=EXPECTED):
    """Run a maintainer script there. `parser`: what its apparmor_parser does; None without one.

    By default it accepts exactly the call that parses the profile without loading it.
    """
    programs = system / "programs"
    programs.mkdir(exist_ok=True)
    if parser is not None:
        (programs / "apparmor_parser").write_text(f"#!/bin/sh\n{parser}\n")
        (programs / "apparmor_parser").chmod(0o755)
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "DPKG_ROOT": str(system)}
    subprocess.run(["sh", stage.LINUX / script, *arguments], env=environ, check=True)


def installed(system):
    return [path.name for path in (system / "etc").glob("apparmor.d/*")]


def test_an_upgrade_brings_its_own_and_it_goes_with_the_package(system):
    maintain(system, "postinst", "configure")
    assert (system / "etc/apparmor.d/skep").read_bytes() == PROFILE.read_bytes()
    maintain(system, "prerm", "upgrade", "9.9")
    (system / "usr/share/skep/apparmor").write_text("the newer one")
    maintain(system, "postinst", "configure", "0.1.0")
    assert (system / "etc/apparmor.d/skep").read_text() == "the newer one"
    maintain(system, "prerm", "remove")
    assert installed(system) == []
    maintain(system, "prerm", "remove")


@pytest.mark.parametrize("change", ["upgrade", "remove", "deconfigure"])
def test_it_is_there_again_if_a_change_of_the_package_fails(system, change):
    maintain(system, "postinst", "configure")
    maintain(system, "prerm", change)
    assert installed(system) == []
    maintain(system, "postinst", f"abort-{change}")
    assert installed(system) == ["skep"]


def test_what_the_administrator_has_changed_stays_until_the_package_is_purged(system):
    profile = system / "etc/apparmor.d/skep"
    maintain(system, "postinst", "configure")
    profile.write_text("changed")
    maintain(system, "prerm", "upgrade", "9.9")
    maintain(system, "postinst", "configure", "0.1.0")
    maintain(system, "prerm", "remove")
    maintain(system, "postrm", "remove")
    maintain(system, "postrm", "purge")
    assert profile.read_text() == "changed"  # the files of an edition are there
    (system / "usr/share/skep/apparmor").unlink()
    maintain(system, "postrm", "purge")
    assert installed(system) == []


@pytest.mark.parametrize("parser", ["exit 1", None])
def test_where_it_is_not_understood_nothing_is_installed(system, parser):
    maintain(system, "postinst", "configure", parser=parser)
    assert installed(system) == []


def test_without_apparmor_nothing_is_installed(system):
    (system / "etc" / "apparmor.d").rmdir()
    maintain(system, "postinst", "configure")
    assert not (system / "etc" / "apparmor.d").exists()


def test_it_is_for_the_program_that_the_package_installs_and_allows_user_namespaces(tmp_path):
    text = PROFILE.read_text()
    assert "profile skep /usr/lib/skep/skep " in text
    if not ABI.exists() or shutil.which("apparmor_parser", path="/usr/sbin:/sbin") is None:
        pytest.skip("there is no AppArmor 4 here")
    parse = ["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--debug", PROFILE]
    done = subprocess.run(
        parse, env=os.environ | {"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert "userns" in done.stdout
