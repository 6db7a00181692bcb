"""An uninvited peer that asks a volunteer of a project for invited peers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.p2p import P2P, PeerID
from hivemind.proto import averaging_pb2

REFUSED = averaging_pb2.PROTOCOL_VIOLATION
SECONDS = 60


def strange(who, addresses, run_id):
    """A volunteer's answers to an uninvited peer, at both averagers: to a join request, a part and a download."""
    # in a thread: in the main thread, hivemind's futures may have created an event loop that would not be closed
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, asyncio.wait_for(knock(who, addresses, run_id), SECONDS)).result()


async def knock(who, addresses, run_id):
    p2p = await P2P.create(initial_peers=addresses, identity_path=str(who.path))
    try:
        peer = PeerID.from_base58(addresses[0].rpartition("/")[2])
        answers = []
        for kind, place in ((GradientAverager, "grad_averager"), (TrainingStateAverager, "state_averager")):
            stub = kind.get_stub(p2p, peer, namespace=f"{run_id}_{place}")
            answers.append((await anext(aiter(await stub.rpc_join_group(averaging_pb2.JoinRequest())))).code)
            answers.append((await anext(aiter(await stub.rpc_aggregate_part(one_part())))).code)
        state = [message async for message in await stub.rpc_download_state(averaging_pb2.DownloadRequest())]
        return (*answers, len(state))
    finally:
        await p2p.shutdown()


async def one_part():
    yield averaging_pb2.AveragingData(code=averaging_pb2.PART_FOR_AVERAGING, group_id=b"any")
