"""hivemind's averagers also start if multiprocessing does not fork by default (Linux from CPython 3.14 on)."""

import os
import subprocess
import sys

import pytest

AVERAGER = """
import multiprocessing, os, sys
from skep.worker.process import processes

multiprocessing.set_start_method({default!r})
{chosen}
import hivemind, torch
from hivemind.averaging import DecentralizedAverager

if __name__ == "__main__":
    code = 1
    try:
        dht = hivemind.DHT(start=True, startup_timeout=60)
        averager = DecentralizedAverager([torch.zeros(1)], dht, prefix="x", start=False)
        averager.run_in_background(await_ready=True, timeout=60)
        print("ready", flush=True)
        code = 0
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}", file=sys.stderr, flush=True)
    finally:
        processes.kill_descendants()
        os._exit(code)
"""


@pytest.mark.parametrize("default", ["forkserver", "spawn"])
@pytest.mark.parametrize("chosen", ["", "processes.use_fork()"])
def test_an_averager_starts_only_where_the_process_chose_to_fork(tmp_path, default, chosen):
    program = tmp_path / "program.py"
    program.write_text(AVERAGER.format(default=default, chosen=chosen))
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=120, env=environ
    )
    if chosen:
        assert (done.stdout, done.returncode) == ("ready\n", 0), done.stderr
    else:
        assert done.returncode == 1
        assert "cannot pickle" in done.stderr
