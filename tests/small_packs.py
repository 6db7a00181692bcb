"""Small compute packs for tests: wheels made by hand, and lists of them."""

import hashlib
import stat
import zipfile
from pathlib import Path

from skep.core.packs import Pack, PackKind, PackList, Wheel, wheel_target, write_packs

STAMP = (2026, 1, 1, 0, 0, 0)


def make_wheel(folder, name, files, version="1.0", unpacked=None):
    """A wheel in `folder` with the files by path; a value may be bytes, or bytes with their mode."""
    file = f"{name}-{version}-py3-none-any.whl"
    made = Path(folder) / file
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, given in files.items():
            content, mode = given if isinstance(given, tuple) else (given, 0o644)
            member = zipfile.ZipInfo(path, STAMP)
            member.external_attr = (stat.S_IFREG | mode if mode < 0o1000 else mode) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    raw = made.read_bytes()
    size = sum(len(c[0] if isinstance(c, tuple) else c) for c in files.values())
    return Wheel(name, version, file, hashlib.sha256(raw).hexdigest(), len(raw), unpacked or max(1, size))


def make_pack(name, *wheels, kind=PackKind.CPU, **facts):
    return Pack(name, kind, "2.13.0", tuple(wheels), **facts)


def publish(served, wheels_folder, list_name, *packs):
    """Write the list and its wheels as targets of a repository; returns their names."""
    targets = Path(served) / "targets"
    names = [list_name]
    (targets / "wheels").mkdir(parents=True, exist_ok=True)
    (targets / list_name).write_bytes(write_packs(PackList(tuple(packs))))
    for wheel in {wheel.sha256: wheel for pack in packs for wheel in pack.wheels}.values():
        (targets / wheel_target(wheel)).write_bytes((Path(wheels_folder) / wheel.file).read_bytes())
        names.append(wheel_target(wheel))
    return names


def tree(folder):
    """The files below a folder by path, with their content and whether they can be executed."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), bool(path.stat().st_mode & 0o111))
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.name != "skep-pack.json"
    }
