"""The base of skep's two averagers: it admits invited peers only, reports who was averaged with, and saves resources.

A request is checked by the authenticated peer id of its connection and the invitation for that id (`auth`).

Stock behaviour that this corrects, each covered by a test: a round whose groupmate never sent anything "succeeds" with
a group of two; a process keeps the memory of its largest round permanently. `rounds` decides which rounds count.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, AsyncIterator, Final, TypeVar  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

import msgspec
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllreduceException, AllReduceRunner, AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.compression import CompressionInfo
from hivemind.dht import DHT
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2, dht_pb2, runtime_pb2
from hivemind.utils import MPFuture, get_dht_time
from hivemind.utils.asyncio import achain, as_aiter, azip

from skep.core.errors import SwarmError
from skep.core.text import Problem
from skep.worker.connection.auth import AdmissionList, Membership
from skep.worker.connection.streams import limits_of
from skep.worker.process.memory import give_back, map_large_blocks
from skep.worker.swarm.averaging.all_reduce import PromptAllReduce, Used, all_of, examine
from skep.worker.swarm.averaging.groups import Company, Groups, due_together, epoch_told, is_credible
from skep.worker.swarm.averaging.robust import Combination, RobustMean
from skep.worker.swarm.averaging.search import BoundedSearch
from skep.worker.swarm.plausible import finite, magnitude
from skep.worker.swarm.rounds import RoundFacts
from skep.worker.swarm.state.choice import in_order, key_of_offers
from skep.worker.swarm.state.coming import Coming
from skep.worker.swarm.state.donor import KEPT_SECONDS, Copy, Place, StateDonor
from skep.worker.swarm.state.download import (
    EPOCHS_AHEAD,
    Arrived,
    Frames,
    NotAllowedError,
    Progress,
    StateDownload,
    Wanted,
)
from skep.worker.swarm.state.uplink import Uplink

ROUNDING: Final = 1e-5
"""Relative change below which a result is our own tensor, rounded in transfer."""
DHT_SECONDS: Final = 15.0
P2PD_SECONDS: Final = 3.0
PING: Final = "DHTProtocol.rpc_ping"
"""The name under which p2pd knows the DHT's answer to whether a peer is there."""
NO_DONOR: Final = "its invitation does not let it hand over the state"
Given = TypeVar("Given")
Value = TypeVar("Value")


class Gathered(dict[Any, Any]):
    """hivemind's result of a round (peer id -> gathered data), with its facts attached."""

    facts: RoundFacts


class HonestAverager(DecentralizedAverager):
    """Mixed into an averager before hivemind's class. `membership` is None in open projects, where every peer is
    admitted. The averagers of one peer have one `uplink`.

    A state is sent in fewer and larger frames than stock's; every peer accepts frames of any size. Memory is returned
    to the system after a round, or when a state was sent or loaded: a peer has two such processes.
    """

    number_of_averager = 0
    """As it counts in `uplink`."""
    _accepts = staticmethod(due_together)
    _search: BoundedSearch | None = None
    _donor: StateDonor | None = None
    _loading: asyncio.Task[Arrived | None] | None = None

    def __init__(
        self, *args: Any, dht: DHT, membership: Membership | None = None, uplink: Uplink | None = None, **kwargs: Any
    ) -> None:
        # before hivemind's constructor, which forks: these are used in the averager's own process
        self._uplink, self._liars = uplink or Uplink(), set[PeerID]()
        self._admissions = AdmissionList(membership, dht) if membership else None
        if membership and not membership.gives_state:
            kwargs["allow_state_sharing"] = False
        self._groups = Groups(lambda: self._running_groups)
        self._company = Company(self._connected, self._answers)
        self._questions = set[asyncio.Future[Any]]()
        self._combinations: dict[bytes, Combination] = {}
        self.loading = Progress()
        self._whole_rounds = multiprocessing.Value("q", 0, lock=False)
        self._seen: list[RoundFacts] = []
        """Facts of each all-reduce of the current round; a round may have several."""
        super().__init__(*args, dht=dht, **kwargs)

    @property
    def whole_rounds(self) -> int:
        """Rounds in which every part was averaged with another peer's data; in both processes."""
        return int(self._whole_rounds.value)

    # --- the averager's process

    def run_in_background(self, await_ready: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002 - hivemind's
        """Start the process without waiting for it: `wait_until_ready` does that."""
        super().run_in_background(await_ready=False)

    def run(self) -> None:
        """The main function of the averager's process."""
        map_large_blocks()
        super().run()

    # --- admission

    async def _admits(self, peer: PeerID) -> bool:
        return self._admissions is None or await self._admissions.admits(peer)

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        peer = context.remote_id
        if not is_credible(request.gather) or self._company.avoids(peer) or not await self._admits(peer):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        if (search := self._matchmaking.step_control) and not self._accepts(search, request.gather):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.NOT_LOOKING_FOR_GROUP)
            return
        async for message in super().rpc_join_group(request, context):
            yield message

    async def _check_group(self, group_info: GroupInfo) -> None:
        """Fail before anything is sent if the leader's group contains a peer that we would not have taken into it."""
        for peer, claim in zip(group_info.peer_ids, group_info.gathered, strict=True):
            if not is_credible(claim):
                raise AllreduceException(f"{peer} is in the group with claims that cannot be true")
            if peer != self.peer_id and not await self._admits(peer):
                raise AllreduceException(f"{peer} is in the group and not invited")

    # --- sending and loading a state

    @property
    def state_version(self) -> float:
        """What the state is labelled with; as long as it is the same, a copy need not be made again."""
        return float(self.state_sharing_priority)

    async def _copied(self) -> Copy:
        version = self.state_version  # before, so that it is never newer than the copy
        metadata, tensors, infos = await self._get_current_state_from_host_process()
        infos = infos or [CompressionInfo.from_tensor(tensor, key=key) for key, tensor in enumerate(tensors)]
        return Copy(version, metadata, list(tensors), list(infos))

    async def _hands_over(self, peer: PeerID) -> StateDonor | None:
        if not self.allow_state_sharing:
            return None
        if self._admissions and not (self._admissions.gives_state and await self._admissions.may_load(peer)):
            return None
        if self._donor is None:
            self._donor = StateDonor(self._copied, lambda: self.state_version, self.state_compression, self._uplink)
        return self._donor

    def _tidy_donor(self) -> None:
        assert self._donor
        self._donor.tidy()
        give_back()

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        async with aclosing(self._send(context.remote_id, StateDonor.stock)) as frames:
            async for frame in frames:
                yield frame

    async def rpc_fetch_state(
        self, request: runtime_pb2.ExpertRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        """As `rpc_download_state`, for peers that know this call: see `state.donor`. Not known to stock peers."""
        place = partial(msgspec.msgpack.decode, request.metadata, type=Place)
        async with aclosing(self._send(context.remote_id, lambda donor: donor.fetch(place()))) as frames:
            async for frame in frames:
                yield frame

    async def _send(self, peer: PeerID, begin: Callable[[StateDonor], Frames]) -> Frames:
        """The frames for a newcomer, as long as its invitation holds."""
        if (donor := await self._hands_over(peer)) is None:
            return
        try:
            async with aclosing(begin(donor)) as frames:
                async for frame in frames:
                    if self._admissions and not await self._admissions.may_load(peer):
                        return
                    yield frame
        finally:
            asyncio.get_running_loop().call_later(KEPT_SECONDS + 1.0, self._tidy_donor)

    def download(self, wanted: Wanted) -> Coming:
        """Begin to load a state in the background, in place of an earlier download."""
        future = MPFuture()
        self._outer_pipe.send(("_download", [], {"future": future, "wanted": wanted}))
        return Coming(future, self.loading, wanted.total, self._stop_download)

    def _stop_download(self) -> None:
        self._outer_pipe.send(("_give_up", [], {}))

    async def _give_up(self) -> None:
        if self._loading:
            self._loading.cancel()

    async def _download(self, future: MPFuture, wanted: Wanted) -> None:
        while self._loading:
            self._loading.cancel()
            await asyncio.sleep(0.01)
        asked = partial(self._donors, wanted)
        download = StateDownload(wanted, self.loading, donors=asked, call=self._call_donor)
        self._loading = asyncio.create_task(download.run())
        arrived: Arrived | Problem | None = None
        try:
            arrived = await self._loading
        except SwarmError as error:
            arrived = error.problem
        except asyncio.CancelledError:
            pass  # given up
        finally:
            self._liars |= download.liars
            future.set_result(arrived)
            # sent by now; hivemind's loop holds its last message, and so this future, until the next message
            future._result = arrived = self._loading = None  # noqa: SLF001 - hivemind has no other way
            give_back()

    async def _donors(self, wanted: Wanted) -> list[PeerID]:
        """Peers that offer a state, in the order in which they are asked."""
        key = key_of_offers(self.prefix)
        try:
            found = await asyncio.wait_for(self.dht.get(key, latest=True, return_future=True), DHT_SECONDS)
        except TimeoutError:
            return []
        entries = found.value if found and isinstance(found.value, dict) else {}
        offers = {peer: entry.value for peer, entry in entries.items() if peer != self.peer_id.to_bytes()}
        newest = math.inf if wanted.epochs is None else wanted.epochs[1] + EPOCHS_AHEAD
        return in_order(offers, self._liars, newest)

    async def _call_donor(self, donor: PeerID, place: Place | None) -> Frames:
        if self._admissions and not await self._admissions.may_give(donor):
            raise NotAllowedError(NO_DONOR)
        stub: Any = self.get_stub(self._p2p, donor, namespace=self.prefix)
        if place is None:
            frames: Frames = await stub.rpc_download_state(averaging_pb2.DownloadRequest())
        else:
            frames = await stub.rpc_fetch_state(runtime_pb2.ExpertRequest(metadata=msgspec.msgpack.encode(place)))
        return self._taken(donor, frames)

    async def _taken(self, donor: PeerID, frames: Frames) -> Frames:
        """The frames, as long as the donor's invitation lets it hand over the state."""
        async with aclosing(frames):
            async for frame in frames:
                if self._admissions and not await self._admissions.may_give(donor):
                    raise NotAllowedError(NO_DONOR)
                yield frame

    # --- a round

    async def _step(self, *, step: StepControl, **kwargs: Any) -> None:
        if self._search is None:
            self._search = BoundedSearch(self._matchmaking, self._groups, self._company)
            limits_of(self._p2p).is_groupmate = self._groups.has
        again = asyncio.create_task(self._admissions.publish_again()) if self._admissions else None
        try:
            await super()._step(step=step, **kwargs)
        finally:
            self._groups.end_all(step)
            if again:
                again.cancel()
            give_back()

    async def _connected(self) -> set[PeerID] | None:
        listing = asyncio.ensure_future(self._p2p.list_peers())
        await self._asked(listing, P2PD_SECONDS)
        if not listing.done() or listing.exception():
            return None
        return {peer.peer_id for peer in listing.result()}

    async def _answers(self, peer: PeerID, within: float) -> bool:
        """A client has no DHT to be asked, and says so, which is an answer."""
        call = self._p2p.call_protobuf_handler(peer, PING, dht_pb2.PingRequest(), dht_pb2.PingResponse)
        ping = asyncio.ensure_future(call)
        await self._asked(ping, within)
        return bool(ping.done())

    async def _asked(self, question: asyncio.Future[Any], within: float) -> None:
        """Wait for its end. It is never cancelled: an answer to a cancelled call ends hivemind's connection to p2pd."""
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)
        question.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({question}, timeout=within)

    @contextmanager
    def _register_allreduce_group(self, group_info: GroupInfo) -> Iterator[None]:
        with super()._register_allreduce_group(group_info):
            self._groups.tell()
            try:
                yield
            finally:
                self._groups.end(group_info.group_id)
                for all_reduce, runner in self._running_groups.items():
                    if all_reduce.startswith(group_info.group_id):
                        runner.cancel()  # no effect on one that ran; else groupmates that have sent would wait for it

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """A groupmate sends its part. Only for a running group, since any peer may name any number of other groups."""
        if not await self._admits(context.remote_id):
            yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        first = await anext(stream)
        if not await self._groups.comes(first.group_id):
            yield averaging_pb2.AveragingData(code=averaging_pb2.BAD_GROUP_ID)
            return
        async for message in super().rpc_aggregate_part(achain(as_aiter(first), stream), context):
            yield message

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Gathered:
        await self._check_group(group_info)
        self._seen = []
        try:
            gathered = Gathered(await super()._aggregate_with_group(group_info, min_vector_size, **kwargs))
            gathered.facts = all_of(self._seen)
            self._whole_rounds.value += gathered.facts.complete and bool(gathered.facts.heard)
            self._company.hear(map(PeerID.from_base58, gathered.facts.heard))
            return gathered
        finally:
            await self._company.meet(group_info.peer_ids)

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[torch.Tensor], group_info: GroupInfo, group_id: bytes | None = None, **kwargs: Any
    ) -> None:
        """As hivemind's, with a look at what the round changes."""
        own_id = group_info.group_id if group_id is None else group_id
        runner = PromptAllReduce(
            p2p=self._p2p,
            servicer_type=type(self),
            prefix=self.prefix,
            tensors=tensors,
            group_id=own_id,
            ordered_peer_ids=group_info.peer_ids,
            company=self._company,
            combination=self._combination_of(own_id.removeprefix(group_info.group_id)),
            epoch=self._groups.epoch_of(group_info.group_id),
            **kwargs,
        )
        self._running_groups[own_id].set_result(runner)
        with self._uplink.round(self.number_of_averager):
            used = await self._use(runner, tensors)
        self.last_updated = get_dht_time()
        self._state_updated.set()
        modes = {
            peer: self.serializer.loads(told)[1]
            for peer, told in zip(group_info.peer_ids, group_info.gathered, strict=True)
        }
        helpers = {peer for peer, mode in modes.items() if mode == AveragingMode.AUX.value}
        runner.hear_through_leader(dict(zip(group_info.peer_ids, map(epoch_told, group_info.gathered), strict=True)))
        self._seen.append(examine(runner, used, helpers))

    def _combination_of(self, phase: bytes) -> Combination:
        """How parts of one all-reduce of a round are combined; `phase` is its name among several of the same round."""
        if phase not in self._combinations:
            self._combinations[phase] = self._new_combination()
        return self._combinations[phase]

    def _new_combination(self) -> Combination:
        return RobustMean(self.peer_id)

    async def _use(self, runner: AllReduceRunner, tensors: Sequence[torch.Tensor]) -> Used:
        """Run the all-reduce, and change `tensors` part by part, unless what we would send is not finite."""
        if runner.weight > 0 and not await in_thread(finite, tensors):
            runner.finalize(cancel=True)  # nothing was sent yet, and the others learn that nothing will come
            return Used(refused=True)
        # only for a peer that reduces nothing is this the sole sign that others took part
        measuring = not runner.tensor_part_reducer.num_parts
        changed = total = 0.0
        async for tensor, change in azip(as_aiter(*tensors), runner):
            tensor.add_(change, alpha=self._averaging_alpha)
            if measuring:
                changed += await in_thread(magnitude, change)
                total += await in_thread(magnitude, tensor)
        return Used(moved=changed > ROUNDING * total)


async def in_thread(call: Callable[[Given], Value], given: Given) -> Value:
    """Compute in another thread: this one answers the other peers."""
    return await asyncio.get_running_loop().run_in_executor(None, call, given)
