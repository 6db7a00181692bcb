"""A donor is lost while a newcomer gets the state from it: single cases of `make test-faults PART=donor`."""

import pytest
from faults.donor import Case, donors, judged, one
from faults.places import own_folder


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "case",
    [
        Case("killed", 0.5),
        Case("frozen", 0.5),
        Case("nan", 0.5),
        pytest.param(Case("killed", 0.5, same=False), marks=pytest.mark.long),
        pytest.param(Case("bytes", 0.5), marks=pytest.mark.long),
        pytest.param(Case("negative", 0.5), marks=pytest.mark.long),
    ],
)
def test_a_newcomer_gets_the_rest_of_a_state_from_the_next_donor(case):
    with own_folder() as folder, donors(folder / "s") as start:
        found = one(start, case)
    assert [each.name for each in judged([found]) if each.missed] == [], found
    assert found["resumed"] == case.same, found
