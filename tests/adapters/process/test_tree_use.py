"""What real processes use: shared memory counted once, threads of all, descriptors of the one that is nearest its limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from skep.adapters.process.tree_use import use_of

MB = 1_000_000
PARENT = r"""
import mmap, os, resource, sys, threading
CHILDREN, MEMORY, FILES, LIMIT, THREADS = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
shared = mmap.mmap(-1, MEMORY or 1)
shared.write(bytes([1]) * MEMORY)
for _ in range(CHILDREN):
    if os.fork() == 0:
        assert sum(memoryview(shared)[::4096]) or not MEMORY
        os.write(1, f"{os.getpid()}\n".encode())
        sys.stdin.read()
        os._exit(0)
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(FILES)]
for _ in range(THREADS):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
os.write(1, f"{os.getpid()}\n".encode())
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors and shared memory are known on Linux only")


class Family:
    """A process and its forks, which share memory."""

    def __init__(
        self, children: int = 0, *, memory: int = 0, files: int = 0, limit: int = 256, threads: int = 0
    ) -> None:
        numbers = [str(number) for number in (children, memory, files, limit, threads)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT, *numbers], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.members = [psutil.Process(int(self.process.stdout.readline())) for _ in range(children + 1)]

    def end(self) -> None:
        if self.process.returncode is None:
            for member in self.members:
                member.kill()
            self.process.communicate()


@pytest.fixture
def family() -> Iterator[type[Family]]:
    made: list[Family] = []

    class Kept(Family):
        def __init__(self, *arguments: int, **more: int) -> None:
            super().__init__(*arguments, **more)
            made.append(self)

    yield Kept
    for each in made:
        each.end()


def test_memory_that_four_processes_share_is_counted_once(family: type[Family]):
    plain, sharing = family(3), family(3, memory=200 * MB)
    more = use_of(sharing.members).memory - use_of(plain.members).memory
    assert more == pytest.approx(200 * MB, rel=0.1)
    assert use_of(sharing.members[:1]).memory < 100 * MB + use_of(plain.members).memory


def test_the_threads_of_all_processes_count(family: type[Family]):
    one, two = family(threads=5), family(threads=7)
    assert use_of([*one.members, *two.members]).threads == 6 + 8


def test_descriptors_are_those_of_the_process_that_is_nearest_its_own_limit(family: type[Family]):
    many, few = family(files=100, limit=1024), family(files=80, limit=100)
    assert use_of(many.members).descriptors == pytest.approx(0.1, abs=0.02)
    assert use_of([*few.members, *many.members]).descriptors == pytest.approx(0.84, abs=0.03)


def test_a_process_that_has_ended_uses_nothing(family: type[Family]):
    ended, living = family(), family()
    ended.end()
    assert use_of([*ended.members, *living.members]).threads == 1
    assert use_of(ended.members).memory == 0
