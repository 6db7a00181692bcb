import pytest

from manifests import raw
from skep.cli.show.permission import lines
from skep.core.project.fit import Fit, Verdict
from skep.recipes.registry import parse_manifest


@pytest.mark.parametrize("homepage", ["https://example.org", ""])
def test_a_homepage_is_shown_where_there_is_one(homepage):
    shown = lines(parse_manifest(raw(homepage=homepage)), Fit(Verdict.FITS))
    labels = [line[0].text.strip() for line in shown if len(line) == 2]
    assert ("Homepage" in labels) is bool(homepage)
