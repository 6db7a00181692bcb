"""What every clock, catalogue, identity, invitation, list of devices and worker does, fake or real."""

from datetime import UTC, datetime

import pytest

from english import in_english
from skep.core.device import DeviceKind
from skep.core.errors import BadInput, InvitationError
from skep.core.project.addresses import Reach
from skep.core.session import messages as m


class ClockContract:
    """Subclasses give `clock` and `passes`, which advances it."""

    def test_time_that_goes_by_is_counted_by_both(self, clock, passes):
        wall, steady = clock.wall(), clock.monotonic()
        passes(0.05)
        assert clock.wall() >= wall + 0.04
        assert clock.monotonic() >= steady + 0.04

    def test_its_zone_knows_its_offset(self, clock):
        moment = datetime.fromtimestamp(clock.wall(), UTC).astimezone(clock.zone())
        assert moment.utcoffset() is not None
        assert moment.timestamp() == pytest.approx(clock.wall(), abs=5.0)


class CatalogueContract:
    """Subclasses give `catalogue` and `source`, the location of one project's manifest."""

    def test_what_is_added_is_found_by_id_and_title_and_listed_once(self, catalogue, source):
        added = catalogue.add(source)
        again = catalogue.add(source)
        assert added == again
        assert catalogue.find(added.id) == catalogue.find(added.title) == added
        assert [each.id for each in catalogue.projects()] == [added.id]
        assert list(catalogue.damaged()) == []

    def test_a_name_that_nobody_added_is_refused_with_the_known_ones(self, catalogue, source):
        with pytest.raises(BadInput):
            catalogue.find("nobody")
        added = catalogue.add(source)
        with pytest.raises(BadInput) as refused:
            catalogue.find("nobody")
        assert added.id in in_english(refused.value.hint)

    def test_a_source_that_is_not_there_is_refused_and_nothing_is_kept(self, catalogue, source):
        with pytest.raises(BadInput):
            catalogue.add(f"{source}.gone")
        assert list(catalogue.projects()) == []


class IdentityContract:
    def test_it_is_the_same_each_time(self, identity):
        assert identity.peer_id == identity.peer_id
        assert identity.peer_id.startswith("Qm")
        assert identity.path.suffix == ".key"


class InvitationsContract:
    """Subclasses give `invitations`, an `open_project`, and an `invited_project` without an invitation."""

    def test_an_open_project_needs_none(self, invitations, open_project):
        assert invitations.present(open_project) == ""

    def test_a_project_for_the_invited_is_refused_without_one(self, invitations, invited_project):
        with pytest.raises(InvitationError):
            invitations.present(invited_project)


class RevocationsContract:
    """Subclasses give `revocations`, and have an `open_manifest`, and an `invited_manifest` with the text of a `known` list."""

    def test_an_open_project_has_none(self, revocations):
        assert revocations.watch(self.open_manifest, Reach.ANY, print) == ""
        revocations.close()

    def test_the_known_list_is_there_at_once_each_time(self, revocations):
        assert revocations.watch(self.invited_manifest, Reach.ANY, print) == self.known
        revocations.rest()
        assert revocations.watch(self.invited_manifest, Reach.ANY, print) == self.known
        revocations.close()


class DevicesContract:
    def test_a_processor_is_always_there_and_names_are_words(self, devices):
        found = devices.list()
        assert [each.kind for each in found].count(DeviceKind.CPU) == 1
        assert all(each.name for each in found)
        assert all(each.unusable is None or in_english(each.unusable) for each in found)


class WorkerContract:
    """Subclasses give `worker`, `options` to start with, and `next_posted`, which waits for its next message."""

    def test_it_says_that_it_exited_once_it_was_stopped(self, worker, options, next_posted):
        worker.start(options)
        worker.stop()
        assert isinstance(next_posted(), m.WorkerExited)

    def test_it_says_that_it_exited_once_it_was_ended_as_stuck(self, worker, options, next_posted):
        worker.start(options)
        worker.end_stuck()
        assert isinstance(next_posted(), m.WorkerExited)

    def test_a_worker_that_is_gone_can_be_told_and_stopped(self, worker, options, next_posted):
        worker.start(options)
        worker.close()
        assert isinstance(next_posted(), m.WorkerExited)
        worker.tell(m.StopTraining())
        worker.stop()
        worker.end_stuck()
        worker.close()

    def test_another_one_can_be_started_after_it(self, worker, options, next_posted):
        for _ in range(2):
            worker.start(options)
            worker.close()
            assert isinstance(next_posted(), m.WorkerExited)
