"""A setting of its own file, in a group that exists."""

from skep.core.settings.setting import Kind, Setting
from skep.core.text import verbatim

SETTINGS = (
    Setting(
        "disk.doze_minutes",
        Kind.WHOLE,
        30,
        unit="min",
        minimum=1,
        maximum=90,
        label=verbatim("Doze"),
        help=verbatim("How long skep dozes after lunch."),
    ),
)
