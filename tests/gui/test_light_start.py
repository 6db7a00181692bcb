"""Import order: the tray before the engine, and never the training stack."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "hivemind", "transformers", "numpy"}


def loaded_by(*modules):
    code = f"import sys, json, {', '.join(modules)}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_tray_waits_for_neither_engine_nor_pages():
    loaded = loaded_by("skep_gui.main")
    assert not loaded & {
        "skep.bootstrap",
        "skep.engine.engine",
        "skep_gui.app.app",
        "skep_gui.app.main_window",
        "requests",
        "keyring",
    }


@pytest.mark.parametrize(
    "module", ["skep_gui.app.app", "skep_gui.app.controller", "skep_gui.app.main_window", "skep_gui.pages.first_run"]
)
def test_the_app_never_loads_the_training_stack(module):
    assert not loaded_by(module) & HEAVY
