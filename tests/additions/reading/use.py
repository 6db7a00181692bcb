"""The reading is taken, shown, checked, reported on change, stored, and used by `explain`. Exits with 3 without it."""

import json
import subprocess
import sys
import tempfile

from skep.core.policy.conditions import Condition, Conditions, Source, Told, answered, news, sensible
from skep.core.session.explain import WORDS
from skep.engine.sensing import PERIODS

if "fan" not in set(Condition):
    sys.exit(3)
FAN = Condition("fan")


def skep(*arguments):
    whole = [sys.executable, "-m", "skep.cli.main", "--home", home, *arguments]
    return subprocess.run(whole, capture_output=True, text=True, check=True).stdout


with tempfile.TemporaryDirectory() as home:
    (found,) = [each for each in json.loads(skep("--json", "sensors"))["sensors"] if each["condition"] == "fan"]
    assert (found["value"], found["note"]) == (True, "the fan itself")
    (line,) = [line for line in skep("sensors").splitlines() if "The fan" in line]
    assert "yes" in line, line

assert sensible({FAN: answered(3.0)})[FAN].source is Source.SILENT
assert news({FAN: Told(answered(value=True), 0.0)}, {FAN: answered(value=False)}, 1.0)
assert PERIODS[FAN] == 7.0
assert Conditions().with_seen({FAN: answered(value=True)})[FAN].value is True
assert "fan" in WORDS
