"""What remains in the training process of a copy of the state that the averager's process has asked for."""

import importlib.util
import threading
import time
import weakref
from queue import SimpleQueue

import pytest
import torch
from hivemind.averaging import averager
from hivemind.utils import MSGPackSerializer

from skep.worker.swarm.state import copying
from swarm_peers import wait_until

EPOCH = {"epoch": 7}


class Host:
    """The training process, of which each copy is noted."""

    def __init__(self, *, fails=False):
        self.storages, self._fails = [], fails

    def state(self):
        if self._fails:
            raise ValueError("not finite")
        tensor = torch.ones(1000)
        self.storages.append(weakref.ref(tensor.untyped_storage()))
        return EPOCH, [tensor], ["info"]


class Asked:
    """In place of an MPFuture of the averager's process: what it is given is sent there, and kept."""

    def __init__(self):
        self.done, self.error = threading.Event(), None

    def set_result(self, result):
        self._result = result
        metadata, (tensor,), infos = result
        self.got = MSGPackSerializer.loads(metadata), tensor.sum().item(), infos
        self.done.set()

    def set_exception(self, error):
        self.error = error
        self.done.set()


class Questions(SimpleQueue):
    """In place of the pipe, which would pickle what is asked."""

    recv = SimpleQueue.get


@pytest.fixture
def asking():
    """Begins a thread that answers for a host, and returns what asks it and waits for the answer."""
    made = []

    def begin(answer, host):
        questions = Questions()
        method = weakref.WeakMethod(host.state)
        thread = threading.Thread(target=answer, args=[MSGPackSerializer, questions, method], daemon=True)
        thread.start()
        made.append((questions, thread))

        def ask():
            questions.put((copying.ASKED, future := Asked()))
            assert future.done.wait(30)
            return future

        return ask

    yield begin
    for questions, thread in made:
        questions.put(("_SHUTDOWN", None))
        thread.join(30)
        assert not thread.is_alive()


def stock():
    """hivemind's own, whatever has been installed in this process."""
    spec = importlib.util.find_spec(averager.__name__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._background_thread_fetch_current_state


@pytest.mark.parametrize("kept", [True, False], ids=["stock", "ours"])
def test_no_copy_of_the_state_is_kept_when_it_has_been_sent_and_stock_keeps_one(asking, kept):
    host, answer = Host(), stock() if kept else copying.answer_all
    ask = asking(answer, host)
    assert ask().got == (EPOCH, 1000.0, ["info"])
    if kept:
        time.sleep(0.5)  # its thread waits for the next question by then
        assert host.storages[0]() is not None
    else:
        wait_until(lambda: host.storages[0]() is None)


def test_who_asks_is_told_why_there_is_no_copy_and_may_ask_again(asking):
    host = Host(fails=True)
    ask = asking(copying.answer_all, host)
    assert str(ask().error) == "not finite"
    host._fails = False
    assert ask().got == (EPOCH, 1000.0, ["info"])
