import re
from pathlib import Path

import pytest

from skep.core.manifest import MANIFEST
from skep.core.manifest_fields import Choice, LaterObject, Nullable, Number, Object, Text, Whole

TEXT = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()
ROWS = dict(re.findall(r"^\| `([a-z_.0-9]+)` \| (.*) \|", TEXT, flags=re.MULTILINE))


def declared(fields, inside=""):
    for name, field in fields.items():
        inner = field.field if isinstance(field, Nullable) else field
        if isinstance(inner, Object) and inner is not field:
            yield f"{inside}{name}", inner
        if isinstance(inner, Object):
            yield from declared({**inner.fields, **(inner.optional or {})}, f"{inside}{name}.")
        else:
            yield f"{inside}{name}", inner


FIELDS = dict(declared(MANIFEST.fields))


def expected(field):
    match field:
        case Choice(now, later):
            return [f"`{name}`" for name in (*now, *later)]
        case Whole(least, most) | Number(least, most) | Text(most, least):
            return [f"{least:.10g}", f"{most:.10g}"]
        case LaterObject(fields):
            return [f"`{name}`" for name in fields]
        case _:
            return []


def test_the_page_lists_every_field_and_no_other():
    assert set(ROWS) == set(FIELDS)


@pytest.mark.parametrize("path", FIELDS)
def test_the_page_says_what_is_declared(path):
    for words in expected(FIELDS[path]):
        assert words in ROWS[path]
