"""Whatever is read, by any of skep's parsers: only the declared error, in time, and in a limited amount of memory.

`make test-hostile` reads 200 times as many cases.
"""

import os
import time

import pytest

import generated_cases
from generated_cases import LIMIT_MEGABYTES, MEGABYTES, PARSERS, SECONDS, Parser, case_of, run

COUNT = 500


@pytest.mark.parametrize("name", PARSERS)
def test_only_the_declared_error_is_raised(name, tmp_path):
    found = run(name, range(COUNT), tmp_path)
    assert not found.failures
    assert not found.failed
    assert found.slowest < SECONDS
    assert found.megabytes < MEGABYTES


def test_most_cases_are_bad_and_each_is_made_again_by_its_number(tmp_path):
    (seed,) = PARSERS["list of packs"](tmp_path).seeds
    cases = [case_of("list of packs", number, [seed]) for number in range(COUNT)]
    assert cases[7] == case_of("list of packs", 7, [seed])
    assert len({*cases}) > 0.9 * COUNT
    assert run("list of packs", range(COUNT), tmp_path).refused > COUNT / 2


SEED = b'{"a": "seed"}'


def but_for_the_seed(read):
    return lambda case: case == SEED or read(case)


def grows(_case):
    bytearray(b"x") * round(2 * LIMIT_MEGABYTES * 1e6)


def panics(_case):
    raise SystemExit("as a library in Rust")


def dies(_case):
    os._exit(1)


def is_slow(_case):
    begun = time.process_time()
    while time.process_time() - begun < 0.05:
        pass


@pytest.mark.parametrize(
    ("read", "failure"), [(grows, "0: MemoryError"), (panics, "0: SystemExit"), (dies, "0: the process ended")]
)
def test_a_parser_that_fails_is_found_with_the_number_of_the_case(read, failure, tmp_path, monkeypatch):
    monkeypatch.setitem(PARSERS, "bad", lambda _: Parser(but_for_the_seed(read), ValueError, [SEED]))
    assert run("bad", range(3), tmp_path).failures[0].startswith(failure)


def test_how_slow_the_slowest_case_was_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(PARSERS, "slow", lambda _: Parser(but_for_the_seed(is_slow), ValueError, [SEED]))
    assert run("slow", range(2), tmp_path).slowest >= 0.05


def test_how_much_memory_the_cases_took_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(PARSERS, "large", lambda _: Parser(but_for_the_seed(is_large), ValueError, [SEED]))
    assert run("large", range(2), tmp_path).megabytes >= 50


def is_large(_case):
    bytearray(b"x") * 60_000_000


def test_a_case_that_never_ends_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(generated_cases, "STUCK_SECONDS", 0.5)
    monkeypatch.setitem(PARSERS, "stuck", lambda _: Parser(but_for_the_seed(never_ends), ValueError, [SEED]))
    assert run("stuck", range(2), tmp_path).failures == ["0: it never ends"]


def never_ends(_case):
    while True:
        pass
