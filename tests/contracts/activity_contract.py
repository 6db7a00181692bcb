"""What every activity sensor does; subclass with a `sensor` fixture."""

import math
import threading

from desktops import until
from english import in_english
from skep.core.policy.conditions import Condition, Source

NUMBERS = {Condition.INPUT}


class ActivityContract:
    def test_it_has_a_name_and_tells_nothing_but_its_conditions(self, sensor):
        assert sensor.name
        assert sensor.conditions
        assert set(sensor.read()) <= set(sensor.conditions)

    def test_it_answers_with_a_sane_value_or_says_why_not(self, sensor):
        for condition, reading in sensor.read().items():
            assert reading.note
            if reading.source is not Source.ANSWERS:
                assert reading.value is None
                assert in_english(reading.note).endswith(".")
            elif condition in NUMBERS:
                assert isinstance(reading.value, float)
                assert math.isfinite(reading.value)
                assert reading.value >= 0
            else:
                assert isinstance(reading.value, bool)

    def test_a_wait_ends_by_itself(self, sensor):
        sensor.read()
        sensor.wait(0.05)
        sensor.wait(0.0)

    def test_closing_ends_a_wait_of_another_thread(self, sensor):
        began = threading.Event()

        def go():
            sensor.read()
            began.set()
            sensor.wait(600)

        thread = threading.Thread(target=go)
        thread.start()
        began.wait(60)
        sensor.close()
        thread.join(60)
        assert not thread.is_alive()

    def test_a_wait_that_begins_after_closing_ends_at_once(self, sensor):
        sensor.read()
        sensor.close()
        thread = threading.Thread(target=sensor.wait, args=(600,), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()

    def test_closing_twice_or_unopened_is_no_error(self, sensor):
        sensor.close()
        sensor.read()
        sensor.close()
        sensor.close()

    def test_it_can_be_read_again_after_it_was_closed(self, sensor):
        # silent is also one that did not answer in time, as on a busy computer; some never answer
        readings = (sources(sensor) for _ in range(3))
        before = next((each for each in readings if Source.SILENT not in each.values()), None) or sources(sensor)
        sensor.close()
        until(lambda: sources(sensor) == before)


def sources(sensor):
    return {condition: reading.source for condition, reading in sensor.read().items()}
