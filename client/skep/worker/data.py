"""The worker's side of the training data: which samples come next, and the batches made of them.

It asks for shards by hash and is told their paths; it must not download anything, and it never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from skep.core.errors import DataError
from skep.core.model import FileRef, Problem, ShardIndex, ShardRef
from skep.core.shards import PeerOrder, Span
from skep.worker.batches import Batch, Rows, batch_of
from skep.worker.shard_files import open_shard

_TRIES: Final = 2
"""How often a shard is asked for before its failure ends training."""


class _Requests:
    """What was asked for, what lies where, and what could not be had."""

    def __init__(self, ask: Callable[[str], None]) -> None:
        self._ask = ask
        self._asked: set[str] = set()
        self._paths: dict[str, Path] = {}
        self._failures: dict[str, list[Problem]] = {}

    def arrived(self, sha256: str, path: Path) -> None:
        self._asked.discard(sha256)
        self._failures.pop(sha256, None)
        self._paths[sha256] = path

    def failed(self, sha256: str, problem: Problem) -> None:
        self._asked.discard(sha256)
        self._failures.setdefault(sha256, []).append(problem)

    def ask_ahead(self, shard: ShardRef) -> None:
        """Ask once; a failure is left until the shard is really needed."""
        if shard.sha256 not in self._failures:
            self._ask_for(shard.sha256)

    def path_of(self, shard: ShardRef | FileRef) -> Path | None:
        """Where the shard lies; None when it was asked for and has not come. Raises DataError when it cannot be had."""
        failures = self._failures.get(shard.sha256, [])
        if len(failures) >= _TRIES:
            del self._failures[shard.sha256]
            raise DataError(failures[-1].title, failures[-1].hint)
        self._ask_for(shard.sha256)
        return self._paths.get(shard.sha256)

    def forget_path(self, sha256: str) -> None:
        self._paths.pop(sha256, None)

    def _ask_for(self, sha256: str) -> None:
        if sha256 not in self._asked and sha256 not in self._paths:
            self._asked.add(sha256)
            self._ask(sha256)


@dataclass
class _Open:
    """An open shard with the order of its rows in this peer's pass."""

    samples: Rows
    pass_number: int
    order: torch.Tensor

    def rows(self, span: Span) -> Rows:
        chosen = self.order[span.offset : span.offset + span.count]
        labels = self.samples.labels
        return Rows(self.samples.inputs[chosen], None if labels is None else labels[chosen])


class Samples:
    """This peer's samples in its own order, from `position` on. For use in one thread.

    Call `ready(n)` until it is true, then `next_batch(n)`; report answers to `ask` by `arrived` and `failed`.
    """

    def __init__(
        self,
        index: ShardIndex,
        peer_id: str,
        run_id: str,
        position: int,
        ask: Callable[[str], None],
    ) -> None:
        self._index = index
        self._order = PeerOrder(index, peer_id, run_id)
        self._position = position
        self._requests = _Requests(ask)
        self._open: dict[str, _Open] = {}
        self._held_out: dict[str, Rows] = {}

    @property
    def position(self) -> int:
        """Samples drawn so far, in all passes; give it back to the constructor to go on here."""
        return self._position

    def arrived(self, sha256: str, path: str) -> None:
        """A verified shard lies at `path`."""
        self._requests.arrived(sha256, Path(path))

    def failed(self, sha256: str, problem: Problem) -> None:
        """The shard cannot be had now. It is asked for once more when it is needed."""
        self._requests.failed(sha256, problem)

    def file(self, file: FileRef) -> Path | None:
        """Where a file of the recipe lies; asks for it, and None while it is on its way. Raises DataError."""
        return self._requests.path_of(file)

    def ready(self, count: int) -> bool:
        """Whether `next_batch(count)` can be served now; asks for what is missing and for one shard more.

        Raises DataError when a shard that is needed is not what was promised, or cannot be had after two tries.
        """
        spans = list(self._order.spans(self._position, count))
        self._close_all_but({span.shard.sha256 for span in spans})
        served = [self._open_span(span) is not None for span in spans]
        self._requests.ask_ahead(self._after(spans[-1], self._position + count))
        return all(served)

    def next_batch(self, count: int) -> Batch:
        """The next `count` samples. Call it after `ready(count)` said yes."""
        if not self.ready(count):
            raise DataError("Training data was taken before it had arrived.", "Report this as a mistake in skep.")
        parts = []
        for span in self._order.spans(self._position, count):
            shard = self._open_span(span)
            assert shard is not None
            parts.append(shard.rows(span))
        batch = batch_of(parts, self._position)
        self._position += count
        return batch

    def held_out(self, count: int) -> Batch | None:
        """The first `count` held-out samples (fewer if there are not so many), always the same ones.

        None while a shard is on its way, and when the project holds nothing out. Raises DataError.
        """
        parts = []
        missing = count
        for shard in self._index.held_out:
            if missing <= 0:
                break
            rows = self._held_out_rows(shard, missing)
            if rows is None:
                return None
            parts.append(rows.first(missing))
            missing -= len(parts[-1])
        return batch_of(parts, 0) if parts else None

    def _held_out_rows(self, shard: ShardRef, count: int) -> Rows | None:
        kept = self._held_out.get(shard.sha256)
        if kept is not None and len(kept) >= min(count, shard.samples):
            return kept
        rows = self._open_file(shard)
        if rows is None:
            return None
        self._held_out[shard.sha256] = rows.first(count)
        return self._held_out[shard.sha256]

    def _open_span(self, span: Span) -> _Open | None:
        shard = self._open.get(span.shard.sha256)
        if shard is None or shard.pass_number != span.pass_number:
            samples = shard.samples if shard else self._open_file(span.shard)
            if samples is None:
                return None
            shard = _Open(samples, span.pass_number, torch.tensor(self._order.samples_of(span)))
            self._open[span.shard.sha256] = shard
        return shard

    def _open_file(self, shard: ShardRef) -> Rows | None:
        path = self._requests.path_of(shard)
        if path is None:
            return None
        try:
            return open_shard(path, shard, self._index.layout)
        except FileNotFoundError:
            # the cache gave its place to another shard before it was opened
            self._requests.forget_path(shard.sha256)
            self._requests.path_of(shard)
            return None
        except OSError as error:
            raise DataError(
                f"The shard {shard.sha256[:12]}… cannot be read: {error.strerror or error}.",
                "Check that the cache folder may be read.",
            ) from None

    def _close_all_but(self, needed: Iterable[str]) -> None:
        for sha256 in self._open.keys() - set(needed):
            del self._open[sha256]
            # its path is forgotten too: by the next pass the cache may have thrown it out
            self._requests.forget_path(sha256)

    def _after(self, last: Span, position: int) -> ShardRef:
        """The shard that follows the one in which `position` lies, in this pass or the next."""
        here = self._order.locate(position)
        if here.shard != last.shard or here.pass_number != last.pass_number:
            return here.shard
        return self._order.locate(position + here.count).shard
