"""A sensor in its own file, for every system."""

from skep.adapters.sensors.source import Polled
from skep.core.policy.conditions import Condition, answered
from skep.core.text import verbatim


class FanSensor(Polled):
    name = "Fan"
    conditions = (Condition.FAN,)

    def read(self):
        return {Condition.FAN: answered(value=True, note=verbatim("the fan itself"))}


SENSOR = FanSensor
