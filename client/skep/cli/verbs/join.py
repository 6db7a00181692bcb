"""The verb `join`: a manifest or a known project's name, the fit check, then a stay in its swarm."""

from __future__ import annotations

import argparse
from pathlib import Path

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show.renderers import face
from skep.cli.show.speech import say, tr
from skep.cli.stay import Ending, Run
from skep.core.project.types import VerifiedProject
from skep.core.session.messages import Join
from skep.services import joining


def add(verbs: Verbs) -> None:
    more = tr(
        "Ctrl-C leaves at once, and exits with 0 once joined; `skep leave` in another terminal waits for the next round. "
        "With --for, the time counts from joining. SKEP_PEERS adds addresses of peers to start from."
    )
    parser = verbs.verb("join", _join, tr("join a project's swarm and train until Ctrl-C"), more)
    parser.add_argument(
        "project", metavar="NAME|MANIFEST|LINK", help=tr("a known project, a manifest's path or URL, or a join link")
    )
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument(
        "--for", metavar=tr("TIME"), dest="span", type=spelled.seconds, help=tr("leave after this, as 60s or 1h")
    )
    limit.add_argument(
        "--epochs", metavar="N", type=spelled.count, help=tr("leave after N epochs ended with this computer")
    )


def _join(context: Context, arguments: argparse.Namespace) -> int:
    seeds = spelled.addresses(context.environ.get("SKEP_PEERS", ""))
    with bootstrap.hold(context.home):
        project = known(context, arguments.project)
        joining.check_invitation(context.home, project)
        remarks(context, project)
        join, ending = Join(project, seeds), Ending(seconds=arguments.span, epochs=arguments.epochs)
        with bootstrap.build(context.home, join) as engine, Interrupts() as interrupts:
            return Run(engine, face(context.terminal), ending).go(join, interrupts)


def known(context: Context, name: str) -> VerifiedProject:
    """The project of that name; a manifest's path or URL is verified and kept first."""
    catalogue = bootstrap.catalogue(context.home)
    if not is_source(name):
        return catalogue.find(name)
    project = catalogue.add(name)
    context.terminal.note(
        tr("{title} is published by {fingerprint}.", title=project.title, fingerprint=project.fingerprint)
    )
    return project


def is_source(name: str) -> bool:
    """Whether `name` means a file or an address, and not a project's name."""
    return "/" in name or name.endswith(".json") or Path(name).is_file()


def remarks(context: Context, project: VerifiedProject) -> None:
    """Check that the project fits this computer, and pass on what the check has to say. Raises DoesNotFit."""
    for remark in joining.check_fit(context.home, project):
        context.terminal.note(say(remark))
