"""What is checked before a project is joined."""

import pytest

from english import in_english
from manifests import signed
from skep import bootstrap
from skep.adapters.gpu.devices import LocalDevices
from skep.core.device import Device, DeviceKind
from skep.core.errors import DoesNotFit
from skep.core.project.fit import Verdict
from skep.core.project.needs import GB
from skep.core.record.contributions import Contribution, ContributionState
from skep.services import joining


def test_free_space_is_a_condition_of_the_first_join_only(home, tmp_path):
    project = bootstrap.catalogue(home).add(str(signed(tmp_path, needs__disk_gb=65_000)))
    with pytest.raises(DoesNotFit):
        joining.check_fit(home, project)
    with bootstrap.ledger(home) as ledger:
        ledger.record(project.id, Contribution("a", 1, 64, ContributionState.CONFIRMED))
    assert joining.check_fit(home, project) is not None


def test_the_cards_that_the_setting_names_are_judged_together(home, tmp_path, monkeypatch):
    shape = {"type": "gpt2", "layers": 4, "heads": 4, "width": 1024, "vocabulary": 256}
    plan = bootstrap.catalogue(home).add(str(signed(tmp_path, recipe__model=shape, needs__vram_gb=0))).manifest
    cards = [Device(DeviceKind.NVIDIA, index, f"Card {index}", memory_total=int(0.4 * GB)) for index in range(2)]
    monkeypatch.setattr(LocalDevices, "list", lambda _: cards)
    monkeypatch.setattr(joining, "free_bytes", lambda _: 100 * GB)
    found = joining.fit(home, plan)
    assert found.verdict is Verdict.TOO_BIG
    assert in_english(found.reasons)[-1] == "All cards together have room for it, with compute.device set to all."
    named = bootstrap.settings(home).load() | {"compute.device": "cuda:0,cuda:1"}
    monkeypatch.setattr("skep.adapters.storage.settings_file.SettingsFile.load", lambda _: named)
    found = joining.fit(home, plan)
    assert found.verdict is Verdict.FITS_GENTLY
    assert in_english(found.reasons)[0].startswith("No single card has room for it, but it fits on both cards together")
    on_each = joining.estimate(home, plan).device
    assert on_each is not None
    assert on_each < 0.4 * GB
