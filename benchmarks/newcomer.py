"""Tests a first installation: the README's first command in bare Debians, and three suites on every supported Python.

    python newcomer.py [--again] [ROW ...]

Each row clones the last commit, sets everything up as the README says, and is written to newcomer.json and newcomer.md
when it ends; a row with a result for this commit is skipped without --again. Needs root, for debootstrap and for the
namespaces in which each row runs, so that no process and no mount is left; a row that cannot run says why. Debian comes
from the mirror of this computer's own apt sources, or from SKEP_DEBIAN_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from machine import machine
from report import HERE, say

ROOT: Final = HERE.parent
WORK: Final = ROOT / "build" / "newcomer"
RESULTS: Final = HERE / "newcomer.json"
TABLE: Final = HERE / "newcomer.md"
ROW_SECONDS: Final = 3600
PIP_SETTINGS: Final = ("PIP_CERT", "PIP_INDEX_URL", "http_proxy", "https_proxy", "no_proxy")
"""This computer's network settings; a bare Debian gets them, but not the wheels stored here."""
SUITES: Final = "core adapters worker"
MARKS: Final = "not long and not built and not alone"


class CannotRun(Exception):
    """A row cannot run here; the message says why in one sentence."""


@dataclass(frozen=True)
class Row:
    """A system and what runs in it: `make demo`, or the suites on Python `suites`. No `release`: this computer."""

    name: str
    system: str
    release: str = ""
    suites: str = ""

    @property
    def command(self) -> str:
        """For bash, in the clone."""
        if not self.suites:
            return "make demo"
        python = f"python{self.suites}" if self.release else found_python(self.suites)
        packages = (
            "apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv && "
            * bool(self.release)
        )
        return (
            f"{packages}make setup PYTHON={python} && make system-packages && status=0 && for suite in {SUITES}; do"
            f' OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 2 --dist loadfile -m "{MARKS}" tests/$suite || status=1;'
            " done; exit $status"
        )


ROWS: Final = (
    Row("debian-12", "Debian 12", "bookworm"),
    Row("debian-13", "Debian 13", "trixie"),
    Row("debian-testing", "Debian testing", "testing"),
    Row("python-3.11", "this computer", suites="3.11"),
    Row("python-3.12", "this computer", suites="3.12"),
    Row("python-3.13", "this computer", suites="3.13"),
    Row("python-3.14", "Debian testing", "testing", suites="3.14"),
)


@dataclass(frozen=True)
class Result:
    """One line of the table. `megabytes` are those that apt and pip downloaded; `commit` is the tested one."""

    name: str
    commit: str
    system: str
    command: str
    python: str
    megabytes: int
    result: str
    seconds: int


def found_python(version: str) -> str:
    """The path of that Python on this computer, from the system or pyenv. Raises CannotRun."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (shutil.which(f"python{version}") or "", *map(str, pyenv.glob(f"{version}*/bin/python"))):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    raise CannotRun(f"There is no Python {version} on this computer.")


def mirror() -> str:
    """The address of a Debian mirror. Raises CannotRun."""
    if named := os.environ.get("SKEP_DEBIAN_MIRROR"):
        return named
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for source in filter(Path.is_file, sources):
        found = re.search(r"^(?:URIs:|deb(?: \[[^]]*])?)\s+(\S+/debian/?)(?:\s|$)", source.read_text(), re.MULTILINE)
        if found:
            return found[1]
    raise CannotRun("The apt sources of this computer name no mirror of Debian; SKEP_DEBIAN_MIRROR can name one.")


def called(*command: str | Path, log: Path) -> None:
    """Run a command. Raises CannotRun with its last line if it fails."""
    with log.open("a") as out:
        if subprocess.run([str(each) for each in command], stdout=out, stderr=out, check=False).returncode:
            raise CannotRun(f"{Path(command[0]).name}: {last_line(log.read_text())}")


def bare(release: str, log: Path) -> Path:
    """A fresh copy of a bare Debian with make, which is all that the README requires. Raises CannotRun."""
    if shutil.which("debootstrap") is None:
        raise CannotRun("debootstrap is not installed.")
    base, fresh = WORK / f"base-{release}", WORK / "debian"
    if not (base / "ready").exists():
        shutil.rmtree(base, ignore_errors=True)
        called("debootstrap", "--variant=minbase", "--include=make", release, base, mirror(), log=log)
        for package in base.glob("var/cache/apt/archives/*.deb"):
            package.unlink()
        settings = Path("/etc/apt/apt.conf.d")
        for file in (Path("/etc/resolv.conf"), Path("/etc/hosts"), *settings.glob("*proxy*"), *settings.glob("99*")):
            shutil.copy(file, base / file.relative_to("/"))
        (base / "ready").touch()
    shutil.rmtree(fresh, ignore_errors=True)
    called("cp", "-a", "--reflink=auto", base, fresh, log=log)
    return fresh


def prepared(row: Row, log: Path) -> tuple[list[str], Path, dict[str, str]]:
    """The command of a row in separate namespaces, the folder to remove after it, and its environment.

    Raises CannotRun.
    """
    if os.geteuid() != 0:
        raise CannotRun("It needs root.")
    folder = bare(row.release, log) if row.release else WORK / row.name
    clone = folder / "root" / "skep" if row.release else folder / "skep"
    shutil.rmtree(clone, ignore_errors=True)
    called("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone, log=log)
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    inside = f"cd skep && {{ {row.command}; }}"
    if not row.release:
        return [*own, "--mount-proc", "bash", "-c", f"cd '{folder}' && {inside}"], folder, dict(os.environ)
    environ = {name: os.environ[name] for name in PIP_SETTINGS if name in os.environ}
    if certificates := environ.get("PIP_CERT"):
        shutil.copy(certificates, folder / "root" / "certificates.crt")
        environ["PIP_CERT"] = "/root/certificates.crt"
    mounts = f"mount -t proc proc '{folder}/proc' && mount -t tmpfs tmpfs '{folder}/dev/shm'"
    shell = f"{mounts} && exec chroot '{folder}' bash -c \"$1\""
    environ |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return [*own, "bash", "-c", shell, "bash", f"cd /root && {inside}"], folder, environ


def measured(row: Row, commit: str) -> Result:
    """Run one row; only its log stays in WORK."""
    WORK.mkdir(parents=True, exist_ok=True)
    log = WORK / f"{row.name}.log"
    log.write_text("")
    command, python, megabytes, begun, folder = "make demo", row.suites, 0, time.monotonic(), None
    if row.suites:
        command = f"tests of {SUITES}"
    try:
        line, folder, environ = prepared(row, log)
        begun = time.monotonic()
        with log.open("a") as out:
            code = subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ, timeout=ROW_SECONDS, check=False
            ).returncode
        said = log.read_text()
        result = outcome(row, said, code)
        archives = sum(each.stat().st_size for each in folder.glob("var/cache/apt/archives/*.deb")) / 1e6
        fetched = re.search(r"^Fetched (\d+) MB of Python packages", said, re.MULTILINE)
        megabytes = round(archives + (int(fetched[1]) if fetched else 0))
        (interpreter,) = folder.glob("**/skep/.venv/pyvenv.cfg")
        python = (re.search(r"^version = ([\d.]+)", interpreter.read_text(), re.MULTILINE) or [python, python])[1]
    except CannotRun as reason:
        result = f"cannot run: {reason}"
    except subprocess.TimeoutExpired:
        result = f"**failed**: not within {ROW_SECONDS} s"
    except ValueError:
        result = f"**failed**: {last_line(log.read_text())}"
    finally:
        seconds = round(time.monotonic() - begun)
        if folder is not None:
            shutil.rmtree(folder)
    return Result(row.name, commit, row.system, command, python, megabytes, result, seconds)


def outcome(row: Row, said: str, code: int) -> str:
    """A row's result, from its output and exit code."""
    if row.suites:
        counts = re.findall(r"^(?:\d+ \w+, )*\d+ \w+(?= in [\d.]+s)", said, re.MULTILINE)
        told = "; ".join(f"{name} {count}" for name, count in zip(SUITES.split(), counts, strict=False))
        done = code == 0 and len(counts) == len(SUITES.split())
    else:
        loss, epochs = (re.search(rf"^{name}\s+(.+)$", said, re.MULTILINE) for name in ("Held-out loss", "Confirmed"))
        told = f"held-out loss {loss[1]}, confirmed {epochs[1]}" if loss and epochs else ""
        done = code == 0 and bool(told)
    return told if done else f"**failed**: {told or last_line(said)}"


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def this_commit() -> str:
    """The last commit that changed anything but the results."""
    paths = [".", *(f":!benchmarks/{each.name}" for each in (RESULTS, TABLE))]
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--abbrev=12", "--", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def stored() -> dict[str, Result]:
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    return {each["name"]: Result(**each) for each in rows}


def written(result: Result) -> None:
    """Add or replace one row of the results."""
    results = stored() | {result.name: result}
    rows = [results[row.name] for row in ROWS if row.name in results]
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": [asdict(each) for each in rows]}, indent=1) + "\n")
    lines = [
        f"`make newcomer-test` on {machine()}. Downloads are those of apt and pip, in MB; wheels that lie on this computer are",
        "not counted, and the bare Debians are not given them.",
        "",
        "| system | Python | what | downloads | result | seconds | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.system} | {r.python} | {r.command} | {r.megabytes} MB | {r.result} | {r.seconds} | {r.commit} |"
        for r in rows
    ]
    TABLE.write_text("\n".join(lines) + "\n")


def main() -> int:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description="What a newcomer meets.", epilog=f"Rows: {', '.join(names)}.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="those alone; otherwise all")
    parser.add_argument("--again", action="store_true", help="also rows that are there for this commit")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(names):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    done, commit, failed = stored(), this_commit(), False
    for row in ROWS:
        if arguments.rows and row.name not in arguments.rows:
            continue
        if not arguments.again and row.name in done and done[row.name].commit == commit:
            say(f"{row.name}: already there for {commit}")
            continue
        say(f"{row.name} …")
        result = measured(row, commit)
        written(result)
        failed |= "**failed**" in result.result
        say(f"{row.name}: {result.result}, {result.seconds} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
