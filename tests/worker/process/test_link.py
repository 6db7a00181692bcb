import os
import subprocess
import sys
import threading

import pytest

from skep.core.session import wire
from skep.core.session.messages import SetShare, StopTraining, WorkerPaused
from skep.worker.process.link import Link

DEADLINE = 10


@pytest.fixture
def pipes():
    to_worker, from_engine = os.pipe()
    from_worker, sink = os.pipe()
    with os.fdopen(to_worker, "rb", buffering=0) as inward, os.fdopen(from_worker, "rb", buffering=0) as outward:
        yield Link(inward, sink), from_engine, outward
    os.close(sink)


def test_messages_arrive_in_order_and_the_end_of_the_pipe_is_told(pipes):
    link, engine, _ = pipes
    heard, gone = [], threading.Event()
    link.listen(heard.append, gone.set)
    os.write(engine, wire.encode(SetShare(0.5)) + wire.encode(StopTraining()))
    os.close(engine)
    assert gone.wait(DEADLINE)
    assert heard == [SetShare(0.5), StopTraining()]
    assert link.received() == heard
    assert link.received() == []


def test_nonsense_from_the_engine_ends_the_link(pipes, capsys):
    link, engine, _ = pipes
    gone = threading.Event()
    link.listen(lambda _: None, gone.set)
    os.write(engine, b"nonsense\n")
    assert gone.wait(DEADLINE)
    assert "not_json" in capsys.readouterr().err
    os.close(engine)


def test_what_is_sent_is_one_line(pipes):
    link, engine, source = pipes
    link.send(WorkerPaused(0.0, 0.04))
    assert wire.decode_from_worker(source.readline()) == WorkerPaused(0.0, 0.04)
    os.close(engine)


def test_an_engine_that_is_gone_is_no_error_for_the_sender(pipes):
    link, engine, source = pipes
    source.close()
    link.send(WorkerPaused(0.0, 0.04))
    os.close(engine)


def test_what_libraries_print_never_reaches_the_engine():
    script = (
        "import os, sys; from skep.worker.process.link import Link; from skep.core.session.messages import WorkerPaused\n"
        "link = Link.over_stdio(); print('chatter'); os.write(1, b'more'); os.system('echo child')\n"
        "link.send(WorkerPaused(0.0, 0.5))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"", capture_output=True, check=True, timeout=DEADLINE)
    assert done.stdout == wire.encode(WorkerPaused(0.0, 0.5))
    assert b"chatter" in done.stderr
    assert b"child" in done.stderr


def test_forked_processes_do_not_hold_the_pipe_open():
    script = (
        "import os, sys; from skep.worker.process.link import Link\n"
        "link = Link.over_stdio(); link.close_in_children()\n"
        "if os.fork() == 0:\n"
        "    os.close(2); os.close(1); os.read(int(sys.argv[1]), 1); os._exit(0)\n"
        "os._exit(0)"
    )
    waiting, end = os.pipe()
    command = [sys.executable, "-c", script, str(waiting)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(waiting,))
    reader = threading.Thread(target=process.stdout.read)
    reader.start()
    process.wait(DEADLINE)
    reader.join(DEADLINE)
    is_held = reader.is_alive()
    os.close(end)  # ends the child, which lived until now
    assert not is_held
    os.close(waiting)
    process.stdin.close()
    process.stdout.close()


def test_a_child_of_a_child_closes_nothing_that_is_not_the_links():
    script = (
        "import os, sys; from skep.worker.process.link import Link\n"
        "link = Link.over_stdio(); link.close_in_children(); numbers = link._sink, link._source.fileno()\n"
        "if os.fork() == 0:\n"
        "    [os.dup2(2, number) for number in numbers]\n"  # the file descriptors are used for other files now
        "    if os.fork() == 0:\n"
        "        [os.write(number, b'open ') for number in numbers]; os._exit(0)\n"
        "    os.wait(); os._exit(0)\n"
        "os.wait(); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"", capture_output=True, check=True, timeout=DEADLINE)
    assert done.stderr == b"open open "
