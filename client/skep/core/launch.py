"""The worker's start message, put together from what the session decided and what only the shell knows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from skep.core.messages import StartTraining, StartWorker


@dataclass(frozen=True)
class LaunchFacts:
    """What the session cannot know: where the identity lies, how far the data was read, which address to listen on.

    `position` counts samples drawn before; `listen_host` is an IPv4 address; `invitation` is as in StartTraining.
    """

    identity_path: str
    position: int
    listen_host: str
    invitation: str = ""


def complete(wanted: StartWorker, facts: LaunchFacts) -> StartTraining:
    """The start message but for `run_folder`, which lives and dies with the process."""
    return StartTraining(
        manifest=wanted.project.manifest,
        index=wanted.index,
        identity_path=facts.identity_path,
        run_folder="",
        seeds=wanted.seeds,
        listen=(f"/ip4/{facts.listen_host}/tcp/{wanted.port}",),
        share=wanted.share,
        device=wanted.device,
        threads=wanted.threads,
        position=facts.position,
        invitation=facts.invitation,
        client_mode=wanted.client_mode,
        present=wanted.present,
        memory=wanted.memory,
        leave_gpu=wanted.leave_gpu,
        leave_ram=wanted.leave_ram,
    )
