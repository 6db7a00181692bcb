"""Brings the German of the app up to date: `make translations`.

    python assets/translations.py update            collect, hand to lupdate, build the .qm, name what lacks German
    python assets/translations.py missing FILE      write what lacks German into FILE, as JSON: English to ""
    python assets/translations.py fill FILE         take the German from such a file, then update

What the pages say stands in `self.tr` and is found by lupdate. What the core and the adapters say stands there as plain
English, since they know no translator: it is read out of their source here, a value in a sentence becoming %1, %2, and
kept in `present/core_sentences.py`, by which `present/hearing.py` recognises a sentence when it arrives.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import xml.etree.ElementTree as ET  # only our own file is read
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
GUI: Final = ROOT / "gui" / "skep_gui"
SENTENCES: Final = GUI / "present" / "core_sentences.py"
GERMAN: Final = GUI / "translations" / "skep_de.ts"
CORE: Final = "core"
"""The context of what is not said by a page."""

_SPEAKING: Final = (
    "client/skep/core/*.py",
    "client/skep/adapters/**/*.py",
    "client/skep/worker/**/*.py",
    "client/skep/bootstrap.py",
    "client/skep/engine.py",
    "client/skep/sensing.py",
    "client/skep/senses.py",
    "client/skep/updating.py",
    "client/skep/host/practice_*.py",
    "gui/skep_gui/desk.py",
    "gui/skep_gui/errands.py",
)
_TERMINAL_ONLY: Final = frozenset(
    {
        "core/control.py",  # between two front ends
        "core/hours.py",
        "core/launch.py",
        "core/recipe_types.py",
        "core/wire.py",  # the worker's link
        "adapters/control_door.py",
        "adapters/ledger_schema.py",
        "adapters/logs.py",
        "adapters/publisher_keys.py",  # keys are made and used in the terminal
        "worker/link.py",
        "worker/low_rank.py",
        "worker/members.py",
        "worker/recomputing.py",
        "worker/traffic.py",
    }
)
"""Modules whose sentences never reach a page."""

_NO_SENTENCES: Final = frozenset(
    {
        "CUDA driver error",  # what PyTorch's errors are known by
        "CUDA error",
        "CUDA error: out of memory",
        "Cannot allocate memory",
        "HIP error",
        "MPS backend",
        "can't allocate memory",
        "cuDNN error",
        "could not find a group",
        "failed to connect to bootstrap peers",
        "no kernel image",
        "not enough memory",
        "model name",  # of /proc/cpuinfo
        "macOS %1",
        "ROCm %1",
        "CUDA %1",
        "base weights",
        "%1 in %2",  # too little to be recognised by
        "%1 or %2",
        "%1 to %2",
        "%1 must be %2",
        "at %1",
        "the %1",
        "The address %1",
        "%1 processor",
        "project's %1",
        "sensor %1",  # names of threads and the like
        "closing %1",
        "invitation to %1",
        "by bell",
        "by file",
        "by time",
        "X11 greeting",
        "Quartz event services",
        "X11 screen saver extension",
        "ext-idle-notify-v1 by swayidle",
        "it was started with a pipe",
        "the worker's message is none of ours: %r",
        "fits gently",
        "too big",
    }
)
_SHORT_WORDS: Final = (
    # single words and what no rule finds, where they stand alone on a page or in another sentence
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "later"),
    *("Paused", "paused", "processor", "GPU", "yes", "no", "Compute", "Memory", "When", "Network", "Disk", "App"),
    *("tried again later", "of memory", "of disk space", "read", "written", "removed"),
    "%1, or 0 for %2",
    "%1, or empty for %2",
    "paused until %1",
    "%1 until %2",
    "full, or what is not full, such as off mon-fri 9-17, gentle sat-sun",
)
_WORDS_OF: Final = {"Setting": (1, 2), "Rule": (1,)}
"""Calls of which even single words are shown: the places of these among the arguments."""
_WORDS_NAMED: Final = frozenset({"zero", "empty", "form", "label", "help", "over"})
_LANGUAGE_CHOICES: Final = "'en'"
"""Languages are called by their own names."""
_SILENT_CALLS: Final = re.compile(
    r"log\.\w+|re\.\w+|warnings\.\w+|.*\.(execute|startswith|endswith|split|partition|rpartition|strftime|removeprefix|removesuffix)"
    r"|(Value|Type|Runtime|Assertion|Key|NotImplemented|Protocol|OS|Wire|Authorization)Error|WireError|getattr|Thread"
)
_WORD: Final = re.compile(r"[A-Za-z]{2,}")
_NO_PROSE: Final = re.compile(
    r"\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|BEGIN)\b|.*%\(|^echo |^Comment|^Desktop Entry$|^[\w.-]+/[\w.-]+$|^\(\?"
)
_OTHER_SENTENCES: Final = re.compile("^\0 (?=\0)|(?<=[.!?]) \0$")
"""Values that are sentences of their own: "{note} {share} until it answers again."."""
_FORMAT_FIELD: Final = re.compile(r"\{[a-z_]*\}")
_UNITS: Final = frozenset({"GB", "MB", "KiB", "kB", "min", "s"})


# --- what the core says


def collected() -> list[str]:
    """Every sentence and phrase that the core may say on a page, its values as %1, %2; sorted."""
    found = set(_SHORT_WORDS)
    for pattern in _SPEAKING:
        for path in sorted(ROOT.glob(pattern)):
            if not path.as_posix().endswith(tuple(_TERMINAL_ONLY)):
                found.update(_said_in(ast.parse(path.read_text(encoding="utf-8"))))
    return sorted(found - _NO_SENTENCES)


def _said_in(tree: ast.Module) -> Iterator[str]:
    silent = _silent(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _single_words(node)
        if id(node) not in silent and isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            for text in _alternatives(node):
                if _is_prose(text):
                    yield _trimmed(text)


def _silent(tree: ast.Module) -> set[int]:
    """Docstrings, what goes to a log or is compared, and parts of what is read as a whole."""
    silent: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and id(node) not in silent:
            silent.update(id(part) for part in ast.walk(node) if part is not node and not isinstance(part, ast.Call))
        elif isinstance(node, ast.Compare | ast.MatchValue) or (
            isinstance(node, ast.Call) and _SILENT_CALLS.fullmatch(ast.unparse(node.func))
        ):
            silent.update(id(part) for part in ast.walk(node))
    return silent


def _single_words(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    if name not in _WORDS_OF:
        return
    chosen = [call.args[place] for place in _WORDS_OF[name] if place < len(call.args)]
    chosen += [each.value for each in call.keywords if each.arg in _WORDS_NAMED]
    for keyword in call.keywords:
        if (
            keyword.arg == "choices"
            and _LANGUAGE_CHOICES not in ast.unparse(keyword.value)
            and isinstance(keyword.value, ast.Tuple)
        ):
            chosen += keyword.value.elts
    for node in chosen:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORD.search(node.value):
            yield node.value


def _alternatives(node: ast.expr) -> list[str]:
    """The texts an expression may be, as templates whose values are NUL; numbered in `_trimmed`."""
    match node:
        case ast.Constant(value=str() as text):
            return [_FORMAT_FIELD.sub("\0", text)]
        case ast.JoinedStr(values=parts):
            return _joined([_alternatives(part) for part in parts])
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([_alternatives(left), _alternatives(right)])
        case ast.IfExp(body=body, orelse=other):
            return [*_alternatives(body), *_alternatives(other)]
        case _:
            return ["\0"]


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    made = [""]
    for part in parts:
        made = [begun + each for begun in made for each in part]
    return made


def _trimmed(text: str) -> str:
    """Stripped of other sentences before and after, and with its values numbered."""
    count = 0
    made = ""
    text = _OTHER_SENTENCES.sub("", text.strip())
    for piece in re.split("(\0)", text):
        count += piece == "\0"
        made += f"%{count}" if piece == "\0" else piece
    return made


def _is_prose(text: str) -> bool:
    words = [word for word in _WORD.findall(text) if word not in _UNITS]
    return bool(words) and " " in text.strip() and "\n" not in text and not _NO_PROSE.match(text)


def module(sentences: Sequence[str]) -> str:
    """The text of `present/core_sentences.py`."""
    lines = "\n".join(f"    {_quoted(each)}," for each in sentences)
    return (
        '"""What the core and the adapters may say on a page, values as %1, %2; made by `make translations`. Data only."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Final\n\n"
        f"# fmt: off\nSENTENCES: Final = (\n{lines}\n)\n"
    )


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False).replace("\N{NO-BREAK SPACE}", "\\u00a0")
    return f"'{text}'" if '"' in text and "'" not in text and "\\" not in text else quoted


# --- the .ts file


def update(german: Path = GERMAN) -> list[str]:
    """Bring everything up to date; what still lacks German."""
    sentences = collected()
    SENTENCES.write_text(module(sentences), encoding="utf-8")
    refresh(sentences, german)
    build(german)
    return lacking(german)


def lacking(german: Path = GERMAN) -> list[str]:
    return [source for source, said in entries(german) if not said]


def refresh(sentences: Sequence[str], german: Path) -> None:
    """Put what is said now into the .ts file; what is said no more falls out."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said.py"
        said.write_text(
            "".join(f"QT_TRANSLATE_NOOP({CORE!r}, {_quoted(each)})\n" for each in sentences), encoding="utf-8"
        )
        sources = [str(said), *(str(path) for path in pages())]
        listed = Path(folder) / "sources.lst"
        listed.write_text("\n".join(sources), encoding="utf-8")
        _qt("lupdate", "-silent", "-locations", "none", "-no-obsolete", f"@{listed}", "-ts", str(german))


def pages() -> list[Path]:
    return sorted(path for path in GUI.rglob("*.py") if path != SENTENCES)


def build(german: Path = GERMAN) -> None:
    _qt("lrelease", "-silent", str(german), "-qm", str(german.with_suffix(".qm")))


def _qt(tool: str, *arguments: str) -> None:
    subprocess.run([Path(sysconfig.get_path("scripts")) / f"pyside6-{tool}", *arguments], check=True)


def entries(german: Path = GERMAN) -> list[tuple[str, str]]:
    """English and German of every entry; "" where it has no German."""
    return [(_text(message, "source"), _german(message)) for message in ET.parse(german).iter("message")]  # noqa: S314


def _german(message: ET.Element) -> str:
    translation = message.find("translation")
    unfinished = translation is None or translation.get("type") == "unfinished"
    return "" if unfinished else _text(message, "translation")


def _text(message: ET.Element, name: str) -> str:
    found = message.find(name)
    return "" if found is None else found.text or ""


def fill(german: dict[str, str]) -> None:
    """Put the German that is given into the entries that lack it, or replace what is there."""
    tree = ET.parse(GERMAN)  # noqa: S314
    for message in tree.iter("message"):
        translation, text = message.find("translation"), german.get(_text(message, "source"), "")
        if translation is not None and text:
            translation.attrib.pop("type", None)
            translation.text = text
    tree.write(GERMAN, encoding="utf-8", xml_declaration=True)


def main() -> int:
    match sys.argv[1:]:
        case ["update"]:
            pass
        case ["missing", file]:
            empty = dict.fromkeys(update(), "")
            Path(file).write_text(json.dumps(empty, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            return 0
        case ["fill", file]:
            update()
            fill(json.loads(Path(file).read_text(encoding="utf-8")))
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    still = update()
    for source in still:
        sys.stdout.write(f"no German yet: {source}\n")
    return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main())
