"""Every recipe in a real swarm: two workers average their gradients, and the held-out loss falls."""

import pytest

from manifests import images, masked
from recipe_files import image_index, lora_recipe, published, text_index, weights
from skep.core.session.messages import ContributionConfirmed, StopTraining, WorkerEvaluated, WorkerProgress
from worker_pipes import PipedWorker

pytestmark = pytest.mark.long

PATIENCE = 150
QUICK = {
    "optimizer__learning_rate": 2e-2,
    "optimizer__weight_decay": 0.0,
    "sync__target_batch_size": 2048,
    "sync__averaging_timeout_seconds": 15,
}


@pytest.fixture
def pair(seeds, tmp_path):
    made = []

    def start(run, index, recipe):
        made.extend(PipedWorker(tmp_path, index) for _ in range(2))
        return [each.start(seeds, id=run, recipe=recipe, **QUICK) for each in made]

    yield start
    for each in made:
        each.close()


def confirmed(message):
    return isinstance(message, ContributionConfirmed) and message.peers == 1


def evaluated(below=float("inf")):
    return lambda message: isinstance(message, WorkerEvaluated) and message.evaluation.loss < below


def assert_learns(workers):
    for worker in workers:
        worker.wait_for(confirmed, PATIENCE)
        first = worker.wait_for(evaluated(), PATIENCE).evaluation.loss
        worker.wait_for(evaluated(below=first - 0.05), PATIENCE)


def end(workers):
    for worker in workers:
        worker.tell(StopTraining())
    for worker in workers:
        worker.wait_gone()


def test_hidden_tokens_are_learnt(pair, tmp_path):
    workers = pair("hidden", text_index(tmp_path), masked("albert", width=32))
    assert_learns(workers)
    end(workers)


def test_classes_of_images_are_learnt(pair, tmp_path):
    workers = pair("pictures", image_index(tmp_path), images(width=32))
    assert_learns(workers)
    end(workers)


def test_of_a_base_with_adapters_only_the_adapters_travel(pair, tmp_path):
    content = weights(published(seed=3, width=64))
    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    recipe, _ = lora_recipe(tmp_path, content=content, targets=targets, width=64, feed_forward=192)
    recipe["adapters"] |= {"rank": 2}
    workers = pair("adapters", text_index(tmp_path), recipe)
    assert_learns(workers)
    for worker in workers:
        end_of_round = worker.said.index(worker.wait_for(confirmed))
        seen = [message for message in worker.said[end_of_round:] if isinstance(message, WorkerProgress)]
        wire = seen[0].progress.bytes_sent + seen[0].progress.bytes_received
        # a round and the messages before it, in both directions: far less than one copy of the base in half precision
        assert 0 < wire < len(content) / 4
    end(workers)
