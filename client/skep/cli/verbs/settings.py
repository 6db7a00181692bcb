"""The verb `settings`: list, get and set. A running skep is told of a change."""

from __future__ import annotations

import argparse
import math
from typing import Any, Final

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import say, tr
from skep.cli.show.terminal import table
from skep.core.policy.rules import contradictions
from skep.core.settings import settings as declared
from skep.core.settings.hours import in_words
from skep.core.settings.setting import Setting, Value
from skep.core.settings.settings import GROUPS, SETTINGS

SCHEDULE: Final = "when.schedule"


def add(verbs: Verbs) -> None:
    group = verbs.group("settings", tr("list, get or set what skep may use"), alone=_list)
    group.verb("list", _list, tr("list every setting with its value"))
    get = group.verb("get", _get, tr("print one setting's value"))
    put = group.verb(
        "set",
        _set,
        tr(
            "change one setting; a running skep uses it immediately, or some settings when training starts the next time"
        ),
    )
    for verb in (get, put):
        verb.add_argument("key", metavar=tr("KEY"), help=tr("such as compute.share_away"))
    put.add_argument("value", metavar=tr("VALUE"), help=tr("such as 30, yes or automatic"))


def _list(context: Context, _arguments: argparse.Namespace) -> None:
    values = bootstrap.settings(context.home).load()
    body = {"settings": [described(setting, values[key]) for key, setting in SETTINGS.items()]}
    rows = [(key, declared.show(key, values[key]), say(setting.help)) for key, setting in SETTINGS.items()]
    remarks = contradictions(values)
    heading = (tr("Setting"), tr("Value"), tr("What it does"))
    told = ("", *map(say, remarks)) if remarks else ()
    context.terminal.show(body | {"remarks": list(remarks)}, [table(heading, rows), *told])


def described(setting: Setting, value: Value) -> dict[str, Any]:
    """One setting as JSON; percentages are fractions, and a bound that is not there is null."""
    return {
        "key": setting.key,
        "value": value,
        "shown": declared.show(setting.key, value),
        "default": setting.default,
        "label": setting.label,
        "help": setting.help,
        "group": GROUPS[setting.group],
        "unit": setting.unit,
        "minimum": setting.minimum if math.isfinite(setting.minimum) else None,
        "maximum": setting.maximum if math.isfinite(setting.maximum) else None,
        "choices": list(setting.choices),
        "words": in_words(str(value)) if setting.key == SCHEDULE else None,
    }


def _get(context: Context, arguments: argparse.Namespace) -> None:
    setting = declared.declared(arguments.key)
    value = bootstrap.settings(context.home).load()[setting.key]
    lines = [declared.show(setting.key, value)]
    if setting.key == SCHEDULE:
        lines.append(say(in_words(str(value))))
    context.terminal.show(described(setting, value), lines)


def _set(context: Context, arguments: argparse.Namespace) -> None:
    value = declared.parse(arguments.key, arguments.value)
    bootstrap.change_settings(context.home, {arguments.key: value})
    sentence = tr("{key} is {value} now.", key=arguments.key, value=declared.show(arguments.key, value))
    more = [say(in_words(str(value)))] if arguments.key == SCHEDULE else []
    remarks = contradictions(bootstrap.settings(context.home).load() | {arguments.key: value})
    body = described(SETTINGS[arguments.key], value) | {"remarks": list(remarks)}
    context.terminal.show(body, [sentence, *more, *map(say, remarks)])
    if arguments.key == "heat.power_cap_watts" and value:
        _remark_on_power(context)


def _remark_on_power(context: Context) -> None:
    """Print a remark if a power limit is set and skep cannot limit the power of any card."""
    caps = [cap for device in bootstrap.devices().list() if (cap := bootstrap.power_cap(device))]
    if not caps:
        context.terminal.note(tr("It has no effect on the processor, and there is no graphics card here."))
    elif all(cap.refused for cap in caps):
        context.terminal.note(tr("It has no effect here. {why}", why=caps[0].refused))
