"""Whether the kernel limits the worker's memory, read from files as the kernel writes them, and from the kernel itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skep.worker.sandbox.limits import GROUPS, check_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")

OWN = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-skep-worker-4711.scope"
CHECKED = "from skep.worker.sandbox.limits import check_memory; check_memory()"


@pytest.fixture
def check(tmp_path):
    def check(own, most=None):
        (tmp_path / "cgroup").write_text(own)
        group = tmp_path / "groups" / OWN[1:]
        group.mkdir(parents=True, exist_ok=True)
        if most is not None:
            (group / "memory.max").write_text(most)
        check_memory(tmp_path / "cgroup", tmp_path / "groups")

    return check


def test_a_scope_with_a_limit_is_one(check):
    check(f"0::{OWN}\n", "1000000000\n")


@pytest.mark.parametrize("most", [None, "max\n", f"{2**62}\n"])
def test_a_scope_without_one_is_none(check, most):
    with pytest.raises(OSError, match="its control group has no limit"):
        check(f"0::{OWN}\n", most)


def test_groups_of_version_1_alone_are_not_known(check):
    with pytest.raises(OSError, match="no control groups of version 2"):
        check(f"4:memory:{OWN}\n", "1000000000\n")


def test_the_kernels_own_limit_is_found():
    controllers = GROUPS / "cgroup.subtree_control"
    if os.geteuid() != 0 or not controllers.exists() or "memory" not in controllers.read_text().split():
        pytest.skip("takes root, and control groups of version 2 with memory")
    group = Path(GROUPS, f"skep-test-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.max").write_text("1000000000")
        enter = f"open('{group}/cgroup.procs', 'w').write('0'); "
        subprocess.run([sys.executable, "-c", enter + CHECKED], check=True)
    finally:
        group.rmdir()
