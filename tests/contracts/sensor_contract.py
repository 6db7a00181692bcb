"""What every ports.Sensor does; subclass with a `sensor` fixture. Runs on fakes and on real sources alike."""

import threading
import time

from english import in_english
from skep.core.policy.conditions import Condition, Source, sensible

PATIENCE = 5.0


class SensorContract:
    def test_it_has_a_name_and_conditions_of_its_own(self, sensor):
        assert sensor.name.strip()
        conditions = list(sensor.conditions)
        assert conditions
        assert len(set(conditions)) == len(conditions)
        assert all(isinstance(condition, Condition) for condition in conditions)

    def test_a_reading_tells_of_its_own_conditions_and_nothing_else(self, sensor):
        assert set(sensor.read()) <= set(sensor.conditions)
        assert set(sensor.read()) <= set(sensor.conditions)

    def test_what_it_answers_can_be(self, sensor):
        seen = sensor.read()
        assert sensible(seen) == seen

    def test_what_is_not_answered_has_no_value_and_says_why(self, sensor):
        for reading in sensor.read().values():
            assert (reading.source is Source.ANSWERS) == (reading.value is not None)
            assert reading.source is Source.ANSWERS or in_english(reading.note).endswith(".")

    def test_waiting_is_over_in_time(self, sensor):
        sensor.read()
        begun = time.monotonic()
        sensor.wait(0.05)
        assert time.monotonic() - begun < PATIENCE

    def test_closing_ends_a_wait_from_another_thread_and_may_be_repeated(self, sensor):
        sensor.read()
        waiting = threading.Thread(target=sensor.wait, args=(60.0,), daemon=True)
        waiting.start()
        # closed repeatedly: the thread may not be waiting yet at the first call
        deadline = time.monotonic() + PATIENCE
        while waiting.is_alive() and time.monotonic() < deadline:
            sensor.close()
            waiting.join(0.02)
        assert not waiting.is_alive()
        sensor.close()
