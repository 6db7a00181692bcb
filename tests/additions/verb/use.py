"""The verb is listed in the help, runs, and prints JSON. Exits with 3 without it."""

import subprocess
import sys


def skep(*arguments):
    whole = [sys.executable, "-m", "skep.cli.main", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


said = skep("greet", "Ada")
if said.returncode:
    sys.exit(3)
assert said.stdout == "Hello, Ada.\n", said.stdout
assert skep("--json", "greet", "Ada").stdout == '{"greeting": "Ada"}\n'
assert "greet whoever asks" in skep("--help").stdout
