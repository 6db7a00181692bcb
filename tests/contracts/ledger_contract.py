"""What every ports.Ledger does; subclass with a `ledger` fixture."""

import math

import pytest

from skep.core.policy.allowance import Change, GpuMemory, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally, Totals
from skep.core.record.usage import Proportion, Quarter, Spent
from skep.core.text import NOTHING, verbatim

PENDING, CONFIRMED, LOST = ContributionState.PENDING, ContributionState.CONFIRMED, ContributionState.LOST


def contribution(name="a", state=PENDING, *, epoch=1, samples=10, reason="", peers=0, swarm=0):
    return Contribution(name, epoch, samples, state, said(reason), peers, swarm)


def said(words):
    return verbatim(words) if words else NOTHING


class LedgerContract:
    def test_an_empty_ledger_knows_nothing(self, ledger):
        assert list(ledger.projects()) == []
        assert list(ledger.pending("p")) == []
        assert list(ledger.contributions()) == []
        assert list(ledger.evaluations("p")) == []
        assert ledger.totals() == ledger.totals("p") == Totals()
        assert ledger.position("p") == 0
        assert list(ledger.changes(0.0, 1e12)) == list(ledger.reactions(20)) == []

    def test_a_contribution_comes_back_as_it_was(self, ledger):
        told = contribution(state=LOST, epoch=7, samples=96, reason="“no other peer”", peers=3)
        ledger.record("p", told)
        assert list(ledger.contributions("p")) == [told]

    @pytest.mark.parametrize("state", [CONFIRMED, LOST])
    def test_pending_becomes_confirmed_or_lost(self, ledger, state):
        ledger.record("p", contribution())
        assert list(ledger.pending("p")) == [contribution()]
        settled = contribution(state=state, samples=12, reason="why", peers=2)
        ledger.record("p", settled)
        assert list(ledger.pending("p")) == []
        assert list(ledger.contributions("p")) == [settled]

    def test_a_pending_one_may_be_replaced(self, ledger):
        ledger.record("p", contribution(samples=10))
        ledger.record("p", contribution(samples=20))
        assert list(ledger.pending("p")) == [contribution(samples=20)]

    @pytest.mark.parametrize("first", [CONFIRMED, LOST])
    @pytest.mark.parametrize("second", list(ContributionState))
    def test_a_settled_one_never_changes_again(self, ledger, first, second):
        ledger.record("p", contribution(state=first, reason="first"))
        ledger.record("p", contribution(state=second, samples=999, reason="second"))
        assert list(ledger.contributions("p")) == [contribution(state=first, reason="first")]

    def test_contributions_come_oldest_first_even_when_settled_in_another_order(self, ledger):
        for name in "cab":
            ledger.record("p", contribution(name))
        ledger.record("p", contribution("b", CONFIRMED))
        ledger.record("p", contribution("c", LOST))
        assert [each.id for each in ledger.contributions("p")] == ["c", "a", "b"]

    def test_totals_count_contributions_and_samples_by_state(self, ledger):
        ledger.record("p", contribution("a", PENDING, samples=1))
        ledger.record("p", contribution("b", CONFIRMED, samples=10))
        ledger.record("p", contribution("c", CONFIRMED, samples=20))
        ledger.record("q", contribution("d", LOST, samples=300))
        assert ledger.totals("p") == Totals(pending=Tally(1, 1), confirmed=Tally(2, 30))
        assert ledger.totals("q") == Totals(lost=Tally(1, 300))
        assert ledger.totals() == Totals(pending=Tally(1, 1), confirmed=Tally(2, 30), lost=Tally(1, 300))

    def test_projects_do_not_mix(self, ledger):
        ledger.record("q", contribution("a"))
        ledger.record("p", contribution("b"))
        ledger.record("q", contribution("c"))
        assert list(ledger.projects()) == ["q", "p"]
        assert [each.id for each in ledger.contributions("q")] == ["a", "c"]
        assert [each.id for each in ledger.contributions()] == ["a", "b", "c"]
        assert [each.id for each in ledger.pending("p")] == ["b"]

    def test_the_last_position_counts(self, ledger):
        ledger.save_position("p", 100)
        ledger.save_position("q", 7)
        ledger.save_position("p", 250)
        assert (ledger.position("p"), ledger.position("q"), ledger.position("r")) == (250, 7, 0)

    def test_a_position_alone_makes_no_project(self, ledger):
        ledger.save_position("p", 100)
        assert list(ledger.projects()) == []

    def test_evaluations_come_in_the_order_they_were_saved(self, ledger):
        for epoch, loss in ((2, 5.5), (3, 4.25), (3, 4.5)):
            ledger.save_evaluation("p", Evaluation(epoch, loss))
        ledger.save_evaluation("q", Evaluation(9, 1.0))
        assert list(ledger.evaluations("p")) == [Evaluation(2, 5.5), Evaluation(3, 4.25), Evaluation(3, 4.5)]

    @pytest.mark.parametrize("loss", [math.nan, math.inf])
    def test_a_loss_that_is_no_number_is_kept_as_such(self, ledger, loss):
        ledger.save_evaluation("p", Evaluation(1, loss))
        (kept,) = ledger.evaluations("p")
        assert str(kept.loss) == str(loss)

    def test_any_text_is_only_text(self, ledger):
        strange = "'; DROP TABLE contributions; -- \N{SNOWMAN}\n"
        ledger.record(strange, contribution(strange, LOST, reason=strange))
        assert list(ledger.projects()) == [strange]
        assert list(ledger.contributions(strange)) == [contribution(strange, LOST, reason=strange)]

    def test_changes_come_back_as_they_were_in_their_order(self, ledger):
        told = [change(10.0, "away"), change(20.0, "battery", share=0.0), change(20.0, "metered", share=0.0)]
        for each in told:
            ledger.record_change(each)
        assert list(ledger.changes(0.0, 100.0)) == told

    def test_a_change_may_have_no_network_and_no_gpu_memory(self, ledger):
        told = change(10.0, "metered", memory=GpuMemory.RELEASE, network=False)
        ledger.record_change(told)
        assert list(ledger.changes(0.0, 100.0)) == [told]

    def test_a_span_of_the_timeline_begins_with_what_was_in_force(self, ledger):
        for at in (10.0, 20.0, 30.0, 40.0):
            ledger.record_change(change(at))
        assert [each.at for each in ledger.changes(25.0, 40.0)] == [20.0, 30.0]
        assert [each.at for each in ledger.changes(30.0, 40.0)] == [20.0, 30.0]
        assert [each.at for each in ledger.changes(50.0, 60.0)] == [40.0]
        assert [each.at for each in ledger.changes(0.0, 10.0)] == []

    def test_what_a_project_costs_is_added_up_by_quarters(self, ledger):
        one, two = Spent(60.0, 50.0, 40.0, 3_000.0, 30.0), Spent(6.0, 5.0, 4.0, 300.0, 3.0)
        assert ledger.alive() is None
        for quarter in (Quarter("p", 900.0, one), Quarter("p", 900.0, two), Quarter("q", 1800.0, two)):
            ledger.add_usage(quarter)
        assert list(ledger.usage(0.0, 1800.0)) == [Quarter("p", 900.0, Spent(66.0, 55.0, 44.0, 3_300.0, 33.0))]
        assert [each.project for each in ledger.usage(900.0, 1801.0)] == ["p", "q"]
        assert ledger.spent("q") == two
        assert ledger.spent() == Spent(72.0, 60.0, 48.0, 3_600.0, 36.0)
        assert ledger.spent("r") == Spent()
        assert ledger.alive() is not None

    def test_a_project_that_only_cost_something_is_a_project_after_the_others(self, ledger):
        ledger.add_usage(Quarter("early", 0.0, Spent(1.0)))
        ledger.record("p", contribution("a"))
        assert list(ledger.projects()) == ["p", "early"]

    def test_reasons_of_lost_samples_the_most_frequent_first(self, ledger):
        for name, reason in (("a", "left"), ("b", "no other peer"), ("c", "no other peer")):
            ledger.record("p", contribution(name, LOST, samples=8, reason=reason))
        ledger.record("q", contribution("d", LOST, samples=1, reason="left"))
        ledger.record("q", contribution("e", CONFIRMED, samples=1))
        assert list(ledger.lost_reasons("p").items()) == [
            (said("no other peer"), Tally(2, 16)),
            (said("left"), Tally(1, 8)),
        ]
        assert ledger.lost_reasons()[said("left")] == Tally(2, 9)
        assert list(ledger.lost_reasons("r")) == []

    def test_the_share_of_the_swarm_is_over_the_epochs_where_it_is_known(self, ledger):
        assert ledger.proportion().share is None
        ledger.record("p", contribution("a", CONFIRMED, samples=50, swarm=200))
        ledger.record("p", contribution("b", CONFIRMED, samples=1_000))
        ledger.record("q", contribution("c", CONFIRMED, samples=100, swarm=400))
        ledger.record("q", contribution("d", LOST, samples=100))
        assert ledger.proportion("p") == Proportion(50, 200)
        assert ledger.proportion().share == 0.25

    def test_the_last_reactions_come_oldest_first(self, ledger):
        for number in range(5):
            ledger.record_reaction(Reaction(float(number), "input", 0.2, 0.25))
        assert [each.at for each in ledger.reactions(3)] == [2.0, 3.0, 4.0]
        assert ledger.reactions(99)[0] == Reaction(0.0, "input", 0.2, 0.25)
        assert list(ledger.reactions(0)) == []


def change(at, rule="away", share=1.0, *, memory=GpuMemory.KEEP, network=True):
    return Change(at, "p", share, rule, verbatim("Training at full share."), memory, network)
