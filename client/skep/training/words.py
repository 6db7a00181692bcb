"""What a script is told: errors as sentences, and the lines that it prints, in the system's language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skep.core.errors import BadInput, SkepError
from skep.core.text import NOTHING, Problem, Text
from skep.language.translator import system_language, translator


class TrainingError(RuntimeError):
    """What failed, where, and what to do, as one or two sentences; `problem` has them as data."""

    def __init__(self, problem: Problem) -> None:
        title, hint = translator(system_language()).problem(problem)
        super().__init__(f"{title} {hint}".strip())
        self.problem = problem


def for_scripts(message: Text) -> Text:
    """The message; another one in place of those that name what only the app has or does."""
    match message.id:
        case "swarm.none_project_seed_peers_answers":
            return Text("script.no_peer_answers", **message.args)
        case "swarm.check_computer_internet_connection_firewall":
            return Text("script.check_connection_or_peers")
        case "swarm.what_answers_not_seed_peer":
            return Text("script.another_peer_answers", **message.args)
        case "swarm.may_have_been_restarted_under":
            return Text("script.copy_addresses")
        case "swarm.seed_peers_answer_but_joining":
            return Text("script.joining_failed", **message.args)
        case "swarm.try_again_later_if_stays":
            return Text("script.give_other_peers")
        case "peer.trains_another_model_under_same":
            return Text("script.train_same_model")
        case (
            "round.skep_tries_again"
            | "round.skep_joins_again"
            | "round.others_may_have_just_left"
            | "watch.skep_starts_training_process_again"
        ):
            return Text("script.start_again")
        case _:
            return message


def say(message: Text) -> str:
    """The message in words."""
    return translator(system_language()).say(message)


@contextmanager
def in_words() -> Iterator[None]:
    """A context in which errors of skep, and waits that take too long, become TrainingError."""
    try:
        yield
    except SkepError as error:
        problem = error.problem
        raise TrainingError(Problem(for_scripts(problem.title), for_scripts(problem.hint))) from error
    except TimeoutError as error:
        raise TrainingError(Problem(Text("script.no_answer_in_time"), Text("script.start_again"))) from error


def refused(title: Text, hint: Text = NOTHING) -> BadInput:
    """The error for an argument that cannot be used."""
    return BadInput(title, hint)
