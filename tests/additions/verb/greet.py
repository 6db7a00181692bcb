"""A verb in its own file."""

from skep.cli.show.speech import tr


def add(verbs):
    verbs.verb("greet", _greet, tr("greet whoever asks")).add_argument("name")


def _greet(context, arguments):
    context.terminal.show({"greeting": arguments.name}, [tr("Hello, {name}.", name=arguments.name)])
    return 0
