"""The lists of what the frozen skep includes and excludes. Nothing is copied or run here.

Two kinds of packages are included. Light ones, for the app and the terminal, are frozen by PyInstaller, module by
module. The training stack (`trees`) is copied beside them as it was installed: torch compiles functions from their
source, transformers lists its own folder, and wheels find their libraries by relative paths. `PRUNED` names the parts
that are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME: Final = "skep"
SIZE_LIMIT: Final = 1_000_000_000
"""Maximum size on disk in bytes, with torch's CPU build."""
APP_SIZE_LIMIT: Final = 220_000_000
"""Maximum size on disk in bytes without the training stack."""

PROGRAMS: Final = {"skep": "run_skep.py", "skep-gui": "run_skep_gui.py"}
"""Each program and its entry. No program may have the name of a package of skep, which it would hide."""

SHARED: Final = (
    "_cffi_backend", "backports", "certifi", "cffi", "charset_normalizer", "cryptography", "filelock", "idna", "msgspec", "platformdirs", "psutil",
    "pynvml", "requests", "six", "urllib3",
)  # fmt: skip
"""Light packages that the training stack imports too: PyInstaller does not analyse it, so they are included whole."""

UNUSED_TREES: Final = frozenset({
    "configargparse",  # hivemind's own command line
    "grpcio", "grpcio-tools",  # hivemind's protocol files are compiled when it is built
    "hf-xet",  # a download method; skep downloads by itself, by hash
    "networkx",  # used by torch's compiler to partition graphs
    "setuptools",  # for compiling extensions
    "annotated-doc", "shellingham", "typer",  # huggingface-hub's command line
})  # fmt: skip
"""Requirements of the training stack's packages that skep never loads."""

SCRIPTS: Final = ("skep.training", "skep.lightning")
"""What only a person's own script uses, in that script's Python."""
MODELS: Final = ("albert", "auto", "bert", "gpt2", "llama", "vit")
"""The folders of transformers/models that skep's recipes use; those that they import are in MODELS_BESIDE."""
MODELS_BESIDE: Final = ("bloom", "encoder_decoder")

PRUNED: Final = (
    "*/__pycache__/*", "*.pyc", "*.pyi", "*.pxd", "*.pyx", "*.h", "*.hpp", "*.cuh", "*.cpp", "*.cmake", "*.a",
    "*/tests/*", "*/conftest.py",
    "torch/bin/*", "torch/include/*", "torch/share/*", "torch/test/*", "torch/testing/_internal/*",
    "torch/lib/*test*.so", "torch/lib/libaoti_custom_ops.so", "torch/lib/libbackend_with_compiler.so",
    "torchgen/*", "functorch/*", "accelerate/test_utils/*",
    "hivemind/hivemind_cli/run_*.py",
    "scipy/stats/*", "scipy/signal/*", "scipy/io/*", "scipy/datasets/*", "scipy/odr/*", "scipy/misc/*",
    "sympy/physics/*", "sympy/polys/benchmarks/*", "isympy.py",
    "numpy/distutils/*", "numpy/f2py/src/*",
    "transformers/models/*/*", "transformers/cli/*",
)  # fmt: skip
"""Files of the trees that are left out, as patterns on their paths."""
KEPT: Final = (
    "torch/bin/torch_shm_manager",
    *(f"torch/testing/_internal/{name}.py" for name in ("__init__", "common_dtype", "logging_tensor")),
    *(f"torch/testing/_internal/distributed/{name}.py" for name in ("__init__", "fake_pg")),
    *(f"torchgen/{name}.py" for name in ("__init__", "code_template", "model", "utils")),
    *(f"transformers/models/{name}/*.py" for name in (*MODELS, *MODELS_BESIDE)),
)
"""Files that are kept although a pattern of PRUNED matches them."""

STDLIB_UNUSED: Final = frozenset({
    "antigravity", "distutils", "ensurepip", "idlelib", "lib2to3", "nis", "test", "this", "tkinter", "_tkinter", "turtle", "turtledemo",
})  # fmt: skip
SOURCES_UNUSED: Final = STDLIB_UNUSED | {"site-packages", "dist-packages", "tests", "idle_test", "__pycache__"}
"""Folders of the standard library whose sources no practice swarm learns from."""

OF_THE_SYSTEM: Final = ("libstdc++.so*", "libgcc_s.so*")
"""The compiler's runtime libraries: the system's graphics drivers need the system's, which are newer than a build's."""

QT_PLUGINS: Final = (
    "platforms/libqxcb*", "platforms/libqoffscreen*", "platforms/libqwayland*", "platforms/libqminimal.*",
    "platforms/*cocoa*", "platforms/*qwindows*",
    "platformthemes/libqxdgdesktopportal*", "platforminputcontexts/libcompose*", "platforminputcontexts/libibus*",
    "xcbglintegrations/*", "wayland-*", "iconengines/*", "imageformats/*svg*", "imageformats/*jpeg*",
    "styles/*", "accessible*",
)  # fmt: skip
"""Qt plugins that the app may load; all others are left out, with their dependencies (GTK, QML, PDF)."""
QT_LIBRARIES_UNUSED: Final = (
    "*Qt6Qml*",
    "*Qt6Quick*",
    "*Qt6VirtualKeyboard*",
    "*Qt6Pdf*",
    "*Qt6EglF*",
    "*Qt6WebEngine*",
)
QT_TRANSLATIONS: Final = ("qtbase_*",)
"""Qt's own translations, for its buttons and dialogs."""


def requirements(name: str, extra: str = "") -> Iterator[Requirement]:
    """The requirements of a distribution on this system, without extras or for one of them."""
    for line in distribution(name).requires or ():
        asked = Requirement(line)
        wants = asked.marker is None or asked.marker.evaluate({"extra": extra})
        if wants and (not extra or (asked.marker and not asked.marker.evaluate({"extra": ""}))):
            yield asked


def closure(asked: Iterable[Requirement]) -> dict[str, Distribution]:
    """These distributions and all that they require, by canonical name."""
    found: dict[str, Distribution] = {}
    todo = [(each.name, frozenset(each.extras)) for each in asked]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        name, extras = wanted = todo.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found[canonicalize_name(name)] = distribution(name)
        except PackageNotFoundError:
            continue  # not required here: for another system, or by an extra of an extra
        for extra in ("", *extras):
            todo += [(each.name, frozenset(each.extras)) for each in requirements(name, extra)]
    return found


def light() -> dict[str, Distribution]:
    """The packages that PyInstaller freezes, without skep itself."""
    return closure([*requirements(NAME), *requirements(NAME, "gui")])


def trees() -> dict[str, Distribution]:
    """The packages copied beside the programs unchanged: the training stack."""
    beside = light()
    return {
        name: found
        for name, found in closure(requirements(NAME, "train")).items()
        if name not in beside and name not in UNUSED_TREES
    }


def is_kept(path: str) -> bool:
    """Whether a file of a tree is included; `path` is relative to site-packages, with slashes."""
    return any(fnmatch(path, each) for each in KEPT) or not any(fnmatch(path, each) for each in PRUNED)


def files(tree: Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    """The included files of a tree: destination below the programs' folder, and source."""
    for file in tree.files or ():
        # files outside of site-packages are scripts for a Python that the build does not have
        if ".." not in file.parts and is_kept(file.as_posix()):
            yield PurePosixPath(file.as_posix()), Path(str(tree.locate_file(file)))


def top_modules(found: Iterable[Distribution]) -> list[str]:
    """The names under which distributions are imported."""
    names = set()
    for each in found:
        for file in each.files or ():
            first = file.parts[0]
            if len(file.parts) > 1 and file.suffix in {".py", ".so"} and not first.startswith((".", "_")):
                names.add(first)
            elif len(file.parts) == 1 and file.suffix in {".py", ".so"}:
                names.add(first.split(".")[0])
    return sorted(name for name in names if name.isidentifier())


def stdlib_modules() -> list[str]:
    """The standard library's modules and packages: PyInstaller does not analyse the trees, so all are included."""
    return sorted(name for name in sys.stdlib_module_names if name not in STDLIB_UNUSED)


def is_library_wanted(place: str) -> bool:
    """Whether a file found by PyInstaller is included; `place` is its destination."""
    path = place.replace("\\", "/")
    if any(fnmatch(path, each) for each in OF_THE_SYSTEM):
        return False
    if "PySide6" not in path and "Qt6" not in path:
        return True
    if any(fnmatch(path, each) for each in QT_LIBRARIES_UNUSED):
        return False
    for folder, wanted in (("/plugins/", QT_PLUGINS), ("/translations/", QT_TRANSLATIONS)):
        _, found, below = path.partition(folder)
        if found:
            return any(fnmatch(below, each) for each in wanted)
    return "/qml/" not in path


def unused_patterns(patterns: Sequence[str] = PRUNED) -> list[str]:
    """Patterns that match no file of any tree: the files have moved or been removed."""
    every = [file.as_posix() for tree in closure(requirements(NAME, "train")).values() for file in tree.files or ()]
    return [each for each in patterns if not any(fnmatch(path, each) for path in every)]
