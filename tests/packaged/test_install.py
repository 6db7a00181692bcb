"""`make setup` prints a file's size before its download, with the real pip and a real index of wheels."""

import functools
import http.server
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import install
import pytest

ROOT = Path(__file__).resolve().parents[2]
BYTES = 60_000_000


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Downloading torch-2.13.0-cp314-cp314-linux.whl (526.6 MB)", ("torch-2.13.0-cp314-cp314-linux.whl", 526.6e6)),
        ("  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)", ("six-1.17.0-py2.py3-none-any.whl", 11e3)),
        ("  Downloading http://127.0.0.1:80/files/a-1-py3-none-any.whl (912 bytes)", ("a-1-py3-none-any.whl", 912.0)),
        ("Using cached six-1.17.0-py2.py3-none-any.whl (11 kB)", None),
        ("Processing ./six-1.17.0-py2.py3-none-any.whl", None),
    ],
)
def test_pips_words_are_read(line, found):
    assert install.announced(line) == found


@pytest.fixture
def index(tmp_path):
    """The address of an index with one large package."""
    folder = tmp_path / "simple" / "large"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "large-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("large.bin", bytes(BYTES))
        wheel.writestr("large-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: large\nVersion: 1.0\n")
        wheel.writestr("large-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("large-1.0.dist-info/RECORD", "")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def run(index, tmp_path, package):
    options = ["--isolated", "--no-cache-dir", "--index-url", index, "--target", str(tmp_path / "into")]
    return subprocess.run(
        [sys.executable, ROOT / "packaging" / "install.py", *options, package],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_large_file_is_named_with_its_size_and_installed(index, tmp_path):
    done = run(index, tmp_path, "large")
    said = ["Fetching large-1.0-py3-none-any.whl, 60 MB …", "Fetched 60 MB of Python packages."]
    assert (done.stdout.splitlines(), done.returncode) == (said, 0), done.stderr
    assert (tmp_path / "into" / "large.bin").stat().st_size == BYTES


def test_what_pip_cannot_do_it_says_itself(index, tmp_path):
    done = run(index, tmp_path, "missing")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "No matching distribution found for missing" in done.stderr
