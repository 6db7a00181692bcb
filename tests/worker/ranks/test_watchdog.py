import threading

from skep.worker.ranks import watchdog
from skep.worker.ranks.watchdog import watched


def test_what_hangs_is_told_once():
    told, heard = [], threading.Event()
    with watched(0.5, lambda: (told.append(True), heard.set())):
        assert heard.wait(30)
    assert told == [True]


def test_what_ends_in_time_is_not_told(monkeypatch):
    told, over = [], []
    monkeypatch.setattr(watchdog, "_watch", lambda _seconds, event, _late: over.append(event))
    with watched(60.0, told.append):
        pass
    assert over[0].is_set()
    monkeypatch.undo()
    watchdog._watch(60.0, over[0], lambda: told.append(True))
    assert not told


def test_a_stop_of_this_process_counts_as_one_look(monkeypatch):
    """As when the computer sleeps: however long one wait takes, the next ones are waited for."""
    told, looks = [], []

    class Event(threading.Event):
        def wait(self, timeout=None):
            looks.append(timeout)
            return len(looks) == 4

    watchdog._watch(2.0, Event(), lambda: told.append(True))
    assert looks == [watchdog.LOOK_SECONDS] * 4
    assert not told
