"""What is said of the worker's sandbox."""

from skep.core.sandbox import Guard, Sandbox


def test_what_is_not_missing_is_enforced():
    assert Sandbox({}).enforced == tuple(Guard)
    assert Guard.FILES not in Sandbox({Guard.FILES: "switched off"}).enforced


def test_every_guard_has_a_label_of_its_own():
    assert len({guard.label for guard in Guard}) == len(Guard)


def test_the_log_has_one_line():
    assert str(Sandbox({})).endswith("memory; missing: nothing")
    assert str(Sandbox(dict.fromkeys(Guard, "no"))).startswith("enforced: nothing; missing: files (no), ")
