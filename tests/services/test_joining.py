"""What is checked before a project is joined."""

import pytest

from manifests import signed
from skep import bootstrap
from skep.core.errors import DoesNotFit
from skep.core.record.contributions import Contribution, ContributionState
from skep.services import joining


def test_free_space_is_a_condition_of_the_first_join_only(home, tmp_path):
    project = bootstrap.catalogue(home).add(str(signed(tmp_path, needs__disk_gb=65_000)))
    with pytest.raises(DoesNotFit):
        joining.check_fit(home, project)
    with bootstrap.ledger(home) as ledger:
        ledger.record(project.id, Contribution("a", 1, 64, ContributionState.CONFIRMED))
    assert joining.check_fit(home, project) is not None
