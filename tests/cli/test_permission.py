import pytest

from manifests import raw
from skep.cli.show.permission import lines
from skep.core.project.fit import Fit, Verdict
from skep.core.sandbox import Guard, Sandbox
from skep.recipes.registry import parse_manifest


@pytest.mark.parametrize("homepage", ["https://example.org", ""])
def test_a_homepage_is_shown_where_there_is_one(homepage):
    shown = lines(parse_manifest(raw(homepage=homepage)), Fit(Verdict.FITS), None)
    labels = [line[0].text.strip() for line in shown if len(line) == 2]
    assert ("Homepage" in labels) is bool(homepage)


def rows(sandbox=None, **changes):
    plan = parse_manifest(raw(**changes))
    return [line[1].text for line in lines(plan, Fit(Verdict.FITS), sandbox) if len(line) == 2]


def test_what_the_training_process_is_kept_from_is_said_guard_by_guard():
    assert "files of this computer; starting programs; " in "\n".join(rows(Sandbox({})))
    lacking = rows(Sandbox({Guard.SERVICES: "Operation not permitted"}))
    assert "sockets of other programs, such as the session bus and the screen (Operation not permitted)" in lacking
    assert "unknown: skep doctor says what it found" in rows(None)


def test_what_is_not_enforced_is_not_called_a_limit():
    text = "\n".join(rows())
    assert "at most" not in text
    assert "as its publisher says; your limits in the settings hold, whatever it needs" in text
    assert "identity, which it has in this project only" in text
    assert "identity, which is the same in all projects by invitation" in "\n".join(rows(membership="invited"))


def test_the_list_of_revoked_invitations_is_a_download_of_projects_by_invitation():
    listed = "every hour the list of revoked invitations"
    assert [any(listed in row for row in rows(membership=each)) for each in ("open", "invited", "moderated")] == [
        False,
        True,
        True,
    ]


def test_where_the_model_comes_from_is_said_as_the_manifest_has_it():
    swarm, signed = ("\n".join(rows(initial_state=each)) for each in ("swarm", "signed"))
    assert "and the swarm's model" in swarm
    assert "and the publisher's signed checkpoint" in signed
    assert "and the swarm's model" not in signed
