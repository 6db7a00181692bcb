"""What every ports.Shards does; subclass with fixtures `shards`, `project`, `known` and `unknown` (shards)."""

from downloads import Posted
from english import in_english
from skep.core.project.addresses import Reach
from skep.core.session.messages import IndexArrived, ShardArrived, ShardFailed


def index_of(shards, project):
    posted = Posted()
    shards.fetch_index(project, posted)
    return posted.answer()


def answer_for(shards, shard):
    posted = Posted()
    shards.fetch(shard, Reach.ANY, posted)
    return posted.answer()


class ShardsContract:
    def test_the_index_is_posted(self, shards, project, known):
        answer = index_of(shards, project)
        assert isinstance(answer, IndexArrived)
        assert known in answer.index.shards

    def test_a_shard_of_the_index_arrives_each_time_it_is_asked_for(self, shards, project, known):
        index_of(shards, project)
        first, second = answer_for(shards, known), answer_for(shards, known)
        assert isinstance(first, ShardArrived)
        assert first.sha256 == known.sha256
        assert first == second

    def test_a_shard_that_cannot_be_had_is_said_in_words(self, shards, project, unknown):
        index_of(shards, project)
        answer = answer_for(shards, unknown)
        assert isinstance(answer, ShardFailed)
        assert answer.sha256 == unknown.sha256
        assert in_english(answer.problem.title).endswith(".")

    def test_one_that_cannot_be_had_does_not_stop_the_next(self, shards, project, known, unknown):
        index_of(shards, project)
        answer_for(shards, unknown)
        assert isinstance(answer_for(shards, known), ShardArrived)

    def test_after_a_stop_what_is_asked_for_arrives(self, shards, project, known):
        index_of(shards, project)
        shards.stop()
        shards.stop()
        assert isinstance(answer_for(shards, known), ShardArrived)

    def test_it_may_be_closed_twice(self, shards):
        shards.close()
        shards.close()
