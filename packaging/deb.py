"""Makes the .debs, compressed with zstd: dist/skep_VERSION_ARCH.deb of the whole, and dist/skep-app_VERSION_ARCH.deb
of the app alone. They cannot be installed beside each other; installing one replaces the other.

    python packaging/deb.py [app] [whole]

Menus, icons and types are updated by the triggers of the packages that own them. The maintainer scripts only install an
AppArmor profile and remove it, so removing and purging affect only what was installed.
"""

from __future__ import annotations

import gzip
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from build import ROOT, WORK, say
from stage import HOMEPAGE, LINUX, VERSION, Edition, chosen_editions, lay_out, moment, write

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
MAINTAINER: Final = os.environ.get("SKEP_MAINTAINER", "The skep authors <skep@example.org>")
LIBRARIES: Final = {
    "ld-linux-x86-64.so.2": "libc6 (>= 2.36)",
    "ld-linux-aarch64.so.1": "libc6 (>= 2.36)",
    **dict.fromkeys(
        ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1"), "libc6 (>= 2.36)"
    ),
    "libcrypt.so.1": "libcrypt1",
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb.so.1": "libxcb1",
}
"""The system libraries that the frozen skep needs, and the packages that contain them."""
DEPENDS: Final = (
    *dict.fromkeys(LIBRARIES.values()),
    "fontconfig-config", "shared-mime-info", "desktop-file-utils", "hicolor-icon-theme",
)  # fmt: skip
RECOMMENDS: Final = ("gnome-keyring | kwalletmanager", "xdg-utils", "fonts-dejavu-core | fonts-noto-core")
SUGGESTS: Final = ("swayidle",)

SCRIPTS: Final = ("postinst", "prerm", "postrm")

CONTROL: Final = """Package: {package}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: {depends}
Recommends: {recommends}
Suggests: {suggests}
Provides: {other}
Conflicts: {other}
Replaces: {other}
Section: science
Priority: optional
Homepage: {homepage}
Description: lend this computer's idle GPU to open training projects
 People train one model together, each on their own computer. skep is the
 program on yours: it joins a project, trains while you do not need the
 device, stops when you do, and records what your computer contributed.
 .
 {brings}
"""
COPYRIGHT: Final = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: skep
Source: {homepage}
Comment: What is bundled, and under which licence, is listed in
 /usr/lib/skep/licenses/INDEX.txt, beside the texts themselves.

Files: *
Copyright: {year} The skep authors
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""
CHANGELOG: Final = """{package} ({version}) unstable; urgency=medium

  * Built from the upstream sources; CHANGELOG.md there lists what is new.

 -- {maintainer}  {date:%a, %d %b %Y %H:%M:%S} +0000
"""


def main() -> None:
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        sys.exit(f"There is no .deb for {platform.machine()}.")
    for edition in chosen_editions(__doc__):
        pack(edition, architecture)


def pack(edition: Edition, architecture: str) -> None:
    made = ROOT / "dist" / f"{edition.package}_{VERSION}_{architecture}.deb"
    # beside the frozen folder, so that its files can be linked
    with tempfile.TemporaryDirectory(dir=WORK, prefix="deb-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        lay_out(edition, root)
        _documents(edition, root / "usr" / "share")
        _apparmor(root)
        _control(edition, root, architecture)
        subprocess.run(
            ["dpkg-deb", "-Zzstd", f"-z{edition.level}", "--root-owner-group", "--build", str(root), str(made)],
            check=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": f"{moment().timestamp():.0f}"},
            stdout=subprocess.DEVNULL,
        )
    size = made.stat().st_size
    say(f"{made}: {size / 1e6:.0f} MB")
    if size > edition.limit:
        say(f"That is more than {edition.limit / 1e6:.0f} MB, which only a whole build for a GPU should be.")


def _documents(edition: Edition, share: Path) -> None:
    folder = share / "doc" / edition.package
    write(folder / "copyright", COPYRIGHT.format(homepage=HOMEPAGE, year=moment().year))
    changes = CHANGELOG.format(package=edition.package, version=VERSION, maintainer=MAINTAINER, date=moment())
    (folder / "changelog.gz").write_bytes(gzip.compress(changes.encode(), 9, mtime=0))
    overrides = (LINUX / "lintian-overrides").read_text(encoding="utf-8")
    write(share / "lintian" / "overrides" / edition.package, overrides.replace("@PACKAGE@", edition.package))


def _apparmor(root: Path) -> None:
    """The profile, and the maintainer scripts that install and remove it."""
    write(root / "usr" / "share" / "skep" / "apparmor", (LINUX / "apparmor").read_text(encoding="utf-8"))
    for name in SCRIPTS:
        write(root / "DEBIAN" / name, (LINUX / name).read_text(encoding="utf-8"))
        (root / "DEBIAN" / name).chmod(0o755)


def _control(edition: Edition, root: Path, architecture: str) -> None:
    bytes_ = sum(each.lstat().st_size for each in root.rglob("*") if each.is_file() and not each.is_symlink())
    write(
        root / "DEBIAN" / "control",
        CONTROL.format(
            package=edition.package,
            other=edition.other,
            brings=edition.brings,
            version=VERSION,
            architecture=architecture,
            maintainer=MAINTAINER,
            kilobytes=bytes_ // 1024,
            depends=", ".join(DEPENDS),
            recommends=", ".join(RECOMMENDS),
            suggests=", ".join(SUGGESTS),
            homepage=HOMEPAGE,
        ),
    )
    sums = subprocess.run(
        "find usr -type f -print0 | sort -z | xargs -0 md5sum",
        shell=True, cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    write(root / "DEBIAN" / "md5sums", sums)


if __name__ == "__main__":
    main()
