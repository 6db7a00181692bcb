"""What an error tells a person, and where it leads."""

from skep.core.errors import BadInput, SkepError
from skep.core.model import Problem, Remedy


def test_an_error_is_a_problem_with_the_remedy_of_its_kind_or_its_own():
    usual = SkepError("It broke.", "Mend it.")
    assert usual.problem == Problem("It broke.", "Mend it.")
    assert usual.problem.remedy == Remedy.DIAGNOSTICS.value
    assert BadInput("No.", remedy="setting:network.port").problem.remedy == "setting:network.port"
