"""An error's message, and the place that it links to."""

from skep.core.errors import BadInput, SkepError
from skep.core.text import Problem, Remedy, verbatim


def test_an_error_is_a_problem_with_the_remedy_of_its_kind_or_its_own():
    usual = SkepError(verbatim("It broke."), verbatim("Mend it."))
    assert usual.problem == Problem(verbatim("It broke."), verbatim("Mend it."))
    assert usual.problem.remedy == Remedy.DIAGNOSTICS.value
    assert BadInput(verbatim("No."), remedy="setting:network.port").problem.remedy == "setting:network.port"
