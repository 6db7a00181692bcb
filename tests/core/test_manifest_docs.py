import json
import re
from pathlib import Path

import pytest

from manifests import raw
from skep.core.manifest import MANIFEST, parse
from skep.core.manifest_fields import Choice, Nullable, Number, Object, Several, Text, Variant, Whole

AUTHORS = (Path(__file__).parents[2] / "docs" / "for-project-authors.md").read_text()
TABLE = AUTHORS.partition("\n## Every field of the manifest\n")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| `([a-z_.0-9]+)` \| (.*) \|", TABLE, flags=re.MULTILINE))
EXAMPLES = re.findall(r'^    ("recipe": \{.*?\})$\n\n', AUTHORS, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_example_of_a_recipe_is_one(text):
    whole = text.replace("https://…", "https://example.org").replace("…", "c" * 64)
    assert parse(raw(recipe=json.loads(f"{{{whole}}}")["recipe"]))


def test_every_recipe_that_has_fields_of_its_own_has_an_example():
    assert len(EXAMPLES) == 3


def declared(fields, inside=""):
    """Every field by its path; one that several kinds have comes more than once."""
    for name, field in fields.items():
        inner = field.field if isinstance(field, Nullable) else field
        if isinstance(inner, Variant):
            yield f"{inside}{name}.{inner.tag}", Choice(tuple(inner.kinds))
            for kind in inner.kinds.values():
                yield from declared(kind.fields, f"{inside}{name}.")
        elif isinstance(inner, Object):
            if inner is not field:
                yield f"{inside}{name}", inner
            yield from declared({**inner.fields, **(inner.optional or {})}, f"{inside}{name}.")
        else:
            yield f"{inside}{name}", inner


FIELDS = list(declared(MANIFEST.fields))


def expected(field):
    match field:
        case Choice(now, later):
            return [f"`{name}`" for name in (*now, *later)]
        case Whole(least, most) | Number(least, most) | Text(most, least):
            return [f"{least:.16g}", f"{most:.16g}"]
        case Several(Choice(now)):
            return [f"`{name}`" for name in now]
        case _:
            return []


def test_the_page_lists_every_field_and_no_other():
    assert set(ROWS) == {path for path, _ in FIELDS}


@pytest.mark.parametrize(("path", "field"), FIELDS)
def test_the_page_says_what_is_declared(path, field):
    for words in expected(field):
        assert words in ROWS[path]
