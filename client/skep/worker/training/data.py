"""Training data in the worker: opening and checking shards, the order of samples, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from safetensors import SafetensorError, safe_open

from skep.core.errors import DataError
from skep.core.project.data import FileRef, ImageLayout, Layout, ShardIndex, ShardRef, TextLayout
from skep.core.project.shards import Claim, Claims, Lot, PeerOrder, Span
from skep.core.session import messages
from skep.core.text import Problem, Text
from skep.recipes.tensors.batches import Batch, Rows, batch_of
from skep.worker.process.link import Link

_TOKENS: Final = ("tokens",)
_IMAGES: Final = ("labels", "pixels")
_TOKEN_KINDS: Final = ("U8", "I32")


def open_shard(path: Path, shard: ShardRef, layout: Layout) -> Rows:
    """The samples of a shard, memory-mapped, after checking that every token and label is in range.

    Raises FileNotFoundError, and DataError when the file does not match the index.
    """
    if path.stat().st_size != shard.bytes:
        raise _unusable(shard, Text("training.has_not_size_index_promises"))
    try:
        with safe_open(path, framework="pt") as file:
            return (
                _open_text(file, shard, layout) if isinstance(layout, TextLayout) else _open_images(file, shard, layout)
            )
    except SafetensorError:
        raise _unusable(shard, Text("training.not_safetensors_file")) from None


def _open_text(file: Any, shard: ShardRef, layout: TextLayout) -> Rows:
    _check_names(file, shard, _TOKENS)
    part = file.get_slice("tokens")
    if part.get_dtype() not in _TOKEN_KINDS:
        raise _unusable(shard, Text("training.tokens_neither_uint8_nor_int32"))
    if tuple(part.get_shape()) != (shard.samples, layout.sequence_length):
        raise _unusable(
            shard,
            Text(
                "training.does_not_hold_samples_tokens", samples=shard.samples, sequence_length=layout.sequence_length
            ),
        )
    tokens: torch.Tensor = file.get_tensor("tokens")
    _check_range(tokens, shard, "tokens", layout.vocabulary)
    return Rows(tokens)


def _open_images(file: Any, shard: ShardRef, layout: ImageLayout) -> Rows:
    _check_names(file, shard, _IMAGES)
    pixels, labels = file.get_slice("pixels"), file.get_slice("labels")
    if pixels.get_dtype() != "U8":
        raise _unusable(shard, Text("training.pixels_not_uint8"))
    if labels.get_dtype() != "I32":
        raise _unusable(shard, Text("training.labels_not_int32"))
    channels, size = layout.channels, layout.size
    if tuple(pixels.get_shape()) != (shard.samples, channels, size, size):
        raise _unusable(
            shard, Text("training.does_not_hold_images_x", samples=shard.samples, channels=channels, size=size)
        )
    if tuple(labels.get_shape()) != (shard.samples,):
        raise _unusable(shard, Text("training.has_not_one_label_each"))
    rows = Rows(file.get_tensor("pixels"), file.get_tensor("labels"))
    assert rows.labels is not None
    _check_range(rows.labels, shard, "labels", layout.classes)
    return rows


def _check_names(file: Any, shard: ShardRef, names: tuple[str, ...]) -> None:
    if tuple(sorted(file.keys())) == names:
        return
    if len(names) == 1:
        raise _unusable(shard, Text("training.does_not_hold_one_tensor", name=names[0]))
    raise _unusable(shard, Text("training.does_not_hold_two_tensors", first=names[0], second=names[1]))


def _check_range(values: torch.Tensor, shard: ShardRef, name: str, count: int) -> None:
    least, most = (int(value) for value in torch.aminmax(values))
    if least < 0 or most >= count:
        raise _unusable(shard, Text("training.has_outside_0", name=name, count=count - 1))


def _unusable(shard: ShardRef, why: Text) -> DataError:
    return DataError(
        Text("training.shard_cannot_used", sha256=shard.sha256[:12], why=why), Text("web.tell_project_publisher")
    )


_TRIES: Final = 2
"""How often a shard is requested before its failure is raised."""
ASK_AGAIN_SECONDS: Final = 30.0
"""Until what could not be fetched is requested again."""


class NotFetched(DataError):
    """A file cannot be fetched or stored now; it is requested again at the next call."""


class _Requests:
    """Files that were requested, the paths of those that arrived, and the problems of those that failed."""

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
        """Request it once; a failure is ignored until the shard is needed."""
        if shard.sha256 not in self._failures:
            self._ask_for(shard.sha256)

    def path_of(self, shard: ShardRef | FileRef) -> Path | None:
        """The shard's path; None if it was requested and has not arrived. Raises NotFetched."""
        failures = self._failures.get(shard.sha256, [])
        if len(failures) >= _TRIES:
            del self._failures[shard.sha256]
            raise NotFetched(failures[-1].title, failures[-1].hint)
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


class Division(Protocol):
    """How the peers of a swarm divide the data among each other. Calls do not block."""

    def claims(self) -> Claims | None:
        """What the others claim, as of now; None while that is being asked."""

    def publish(self, claim: Claim) -> None:
        """Tell the others what this peer claims."""

    def renew(self) -> None:
        """Tell it again if the others would forget it. To be called for each batch."""


class Undivided:
    """Of a peer that knows no others."""

    def claims(self) -> Claims:
        return Claims()

    def publish(self, claim: Claim) -> None:
        pass

    def renew(self) -> None:
        pass


@dataclass(frozen=True)
class _Plan:
    """The next `count` samples from `position` on, which end at `end`."""

    position: int
    count: int
    spans: tuple[Span, ...]
    end: int


class Samples:
    """This peer's samples in its own order, from `position` on, without those of others. For use in one thread.

    Call `ready(n)` until it is true, then `next_batch(n)`; report answers to `ask` with `arrived` and `failed`. The lot
    in which `position` lies at first is drawn without asking whether another peer holds it.
    """

    def __init__(self, index: ShardIndex, peer_id: str, run_id: str, position: int, ask: Callable[[str], None]) -> None:
        self._index = index
        self._order = PeerOrder(index, peer_id, run_id)
        self.position = position
        """Samples passed so far, drawn or left to others, in all passes; where a restart continues."""
        self._division: Division = Undivided()
        self._known = Claims()
        """What others claimed when this peer last chose a lot."""
        self._own: set[tuple[int, int]] = set()
        """Pass and number of the lots that this peer chose."""
        self._planned: _Plan | None = None
        self._ahead: Lot | None = None
        """The lot for which the following shard was asked for."""
        self._requests = _Requests(ask)
        self._open: dict[str, _Open] = {}
        self._held_out: dict[str, Rows] = {}

    def divide(self, division: Division) -> None:
        """Leave lots that others hold to them from now on, and tell them what this peer holds."""
        self._division = division
        division.publish(self._order.claim(self.position))

    def arrived(self, sha256: str, path: str) -> None:
        """A verified shard is at `path`."""
        self._requests.arrived(sha256, Path(path))

    def failed(self, sha256: str, problem: Problem) -> None:
        """The shard cannot be fetched now. It is requested once more when it is needed."""
        self._requests.failed(sha256, problem)

    def file(self, file: FileRef) -> Path | None:
        """The path of a file of the recipe; requests it, and returns None until it has arrived. Raises DataError."""
        return self._requests.path_of(file)

    def ready(self, count: int) -> bool:
        """Whether `next_batch(count)` can be served now; requests what is missing, and the following shard.

        It cannot while another peer's claims are being asked for.

        Raises DataError when a shard that is needed does not match the index, NotFetched after two tries to fetch it.
        """
        plan = self._planned_for(count)
        if plan is None:
            return False
        self._close_all_but({span.shard.sha256 for span in plan.spans})
        served = [self._open_span(span) is not None for span in plan.spans]
        if self._ahead is not plan.spans[-1].lot:
            self._ahead = plan.spans[-1].lot
            self._requests.ask_ahead(self._after(plan.spans[-1], plan.end))
        return all(served)

    def plan(self, count: int) -> None:
        """Choose the samples that `ready(count)` will look for; no shard is opened, which would count as computing."""
        self._planned_for(count)

    def next_batch(self, count: int) -> Batch:
        """The next `count` samples. Call it after `ready(count)` returned True."""
        if not self.ready(count):
            raise DataError(Text("training.training_data_was_taken_before"), Text("training.report_mistake_skep"))
        assert self._planned is not None
        parts = []
        for span in self._planned.spans:
            shard = self._open_span(span)
            assert shard is not None
            parts.append(shard.rows(span))
        batch = batch_of(parts, self.position)
        self.position = self._planned.end
        return batch

    def _planned_for(self, count: int) -> _Plan | None:
        """The next batch; None while the claims of others are being asked for."""
        if self._planned is None or (self._planned.position, self._planned.count) != (self.position, count):
            spans, end = list[Span](), self.position
            while (left := count - sum(span.count for span in spans)) > 0:
                begin = self._own_place(end)
                if begin is None:
                    return None
                span = self._order.locate(begin)
                spans.append(replace(span, count=min(left, span.count)))
                end = begin + spans[-1].count
            self._planned = _Plan(self.position, count, tuple(spans), end)
        return self._planned

    def _own_place(self, position: int) -> int | None:
        """Where this peer goes on at `position`; None while the claims of others are being asked for."""
        if not self._own:
            return self._choose(position)
        here = self._order.locate(position)
        if (here.pass_number, here.lot.number) in self._own:
            self._division.renew()
            return position
        claims = self._division.claims()
        if claims is None:
            return None
        self._known = claims
        return self._choose(self._order.next_free(position, claims))

    def _choose(self, position: int) -> int:
        here = self._order.locate(position)
        if (here.pass_number, here.lot.number) not in self._own:
            self._own = {lot for lot in self._own if lot[0] >= here.pass_number - 1}
            self._own.add((here.pass_number, here.lot.number))
            self._division.publish(self._order.claim(position))
        return position

    def held_out(self, count: int) -> Batch | None:
        """The first `count` held-out samples (fewer if there are fewer), always the same.

        None until their shards have arrived, and when the project has no held-out samples. Raises DataError.
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
            # the cache evicted it before it was opened
            self._requests.forget_path(shard.sha256)
            self._requests.path_of(shard)
            return None
        except OSError as error:
            raise DataError(
                Text("training.shard_cannot_read", sha256=shard.sha256[:12], reason=str(error.strerror or error)),
                Text("training.check_cache_folder_may_read"),
            ) from None

    def _close_all_but(self, needed: Iterable[str]) -> None:
        for sha256 in self._open.keys() - set(needed):
            del self._open[sha256]
            # its path is dropped too: the cache may have evicted it by the next pass
            self._requests.forget_path(sha256)

    def _after(self, last: Span, position: int) -> ShardRef:
        """The shard that this peer probably draws from after the one of `last`, in this pass or the next."""
        while (here := self._order.locate(position)).shard == last.shard and here.pass_number == last.pass_number:
            position += here.count
        return self._order.locate(self._order.next_free(position, self._known)).shard


def hear_data(link: Link, samples: Samples) -> None:
    """Pass the engine's messages about shards since the last call to `samples`."""
    for message in link.received():
        match message:
            case messages.ShardArrived():
                samples.arrived(message.sha256, message.path)
            case messages.ShardFailed():
                samples.failed(message.sha256, message.problem)
            case (
                messages.SetShare()
                | messages.SetTraffic()
                | messages.RevocationsArrived()
                | messages.FinishTraining()
                | messages.StopTraining()
                | messages.WorkerOptions()
            ):
                pass  # handled by the listening thread
