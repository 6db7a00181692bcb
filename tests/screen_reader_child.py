"""A screen reader's functions as a program of the system's Python: reads the tree, presses, sets the focus.

One JSON request a line on standard input, one JSON answer a line on standard output. Started by screen_reader.py.
"""

import json
import sys

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402 - the version is required first

BEYOND = 3
STATES = ("SHOWING", "VISIBLE", "ENABLED", "FOCUSABLE", "FOCUSED", "CHECKED")


def application(name):
    desktop = Atspi.get_desktop(0)
    for place in range(desktop.get_child_count()):
        found = desktop.get_child_at_index(place)
        if found is not None and found.get_name() == name:
            found.clear_cache()
            return found
    return None


def below(node):
    """Every visible object, `node` first."""
    yield node
    for place in range(node.get_child_count()):
        child = node.get_child_at_index(place)
        if child is not None and (child.get_state_set().contains(Atspi.StateType.SHOWING) or _is_menu(child)):
            yield from below(child)


def _is_menu(node):
    return node.get_role_name() in ("popup menu", "menu")


def told(node):
    states = node.get_state_set()
    return {
        "role": node.get_role_name(),
        "name": node.get_name() or "",
        "description": node.get_description() or "",
        "states": [name.lower() for name in STATES if states.contains(getattr(Atspi.StateType, name))],
        "actions": actions(node),
    }


def actions(node):
    return [Atspi.Action.get_action_name(node, place) for place in range(node.get_n_actions())]


def found(root, request):
    for node in below(root):
        fits = request["role"] in ("", node.get_role_name())
        if fits and node.get_name() == request["name"] and node.get_state_set().contains(Atspi.StateType.ENABLED):
            return node
    return None


def answer(request):
    root = application(request["application"])
    if root is None:
        return None
    if request["do"] == "tree":
        return [told(node) for node in below(root)]
    if request["do"] == "beyond":
        return sum(node.get_child_at_index(node.get_child_count() + BEYOND) is None for node in below(root))
    node = found(root, request)
    if node is None:
        return None
    if request["do"] == "focus":
        return node.grab_focus()
    return node.do_action(actions(node).index(request["action"]))


def main():
    for line in sys.stdin:
        try:
            said = {"answer": answer(json.loads(line))}
        except GLib.GError as error:  # the object may no longer exist
            said = {"answer": None, "error": error.message}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


main()
