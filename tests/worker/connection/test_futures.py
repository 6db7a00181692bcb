"""What remains of a future after its error has been raised, or sent to another process."""

import gc
import multiprocessing
import weakref

import pytest
from hivemind.utils import MPFuture

from skep.worker.connection import futures


@pytest.fixture(params=["stock", "ours"])
def ours(request):
    """Whether the futures are ours. No garbage is collected meanwhile."""
    stock = MPFuture.result, MPFuture.set_exception
    if request.param == "ours":
        futures.install()
    gc.disable()
    yield request.param == "ours"
    gc.enable()
    MPFuture.result, MPFuture.set_exception = stock


def fail(future):
    """As hivemind's averager, which raises some errors again."""
    with pytest.raises(ValueError, match="no group"):
        set_and_raise(future)


def set_and_raise(future):
    try:
        int("no group")
    except ValueError as error:
        future.set_exception(error)
        raise


def test_an_error_that_was_raised_keeps_its_future_with_stock_and_not_with_ours(ours):
    future = MPFuture()
    fail(future)
    with pytest.raises(ValueError, match="no group") as raised:
        future.result(5.0)
    assert future.exception() is not None  # the same again for whoever asks again
    with pytest.raises(ValueError, match="no group"):
        future.result()
    kept = weakref.ref(future)
    del future, raised
    assert (kept() is None) == ours


class Unlike(Exception):
    def __init__(self, *, reason):
        super().__init__("with a reason")


def test_an_error_that_cannot_be_copied_is_raised_itself(ours):
    future, error = MPFuture(), Unlike(reason="any")
    future.set_exception(error)
    with pytest.raises(Unlike) as raised:
        future.result(5.0)
    assert raised.value is error


def tell(pipe):
    """In the other process: whether the future is gone when its error has been sent."""
    future = pipe.recv()
    fail(future)
    kept = weakref.ref(future)
    del future
    pipe.send(kept() is None)


def test_an_error_that_was_sent_keeps_the_future_there_with_stock_and_not_with_ours(ours):
    context = multiprocessing.get_context("fork")
    own, other = context.Pipe()
    future = MPFuture()
    process = context.Process(target=tell, args=[other], daemon=True)
    process.start()
    own.send(future)
    assert own.recv() == ours
    with pytest.raises(ValueError, match="no group"):
        future.result(5.0)
    process.join()
