"""A setting in its own file, in an existing group."""

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
