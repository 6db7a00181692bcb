"""Generated input for everything of skep's that reads what others wrote: valid documents, changed at random.

A case is made from its parser's name, its number and the valid documents, some of which have fresh keys and times. So the
beginning of one that fails is shown too.
"""

import contextlib
import json
import logging
import math
import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import torch
from google.protobuf.message import DecodeError
from hivemind.compression import serialize_torch_tensor
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.validation import DHTRecord
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey
from safetensors.torch import save
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from fakes import make_index, make_joined, make_project
from invitations import Project
from manifests import PEER, example, images, masked, raw, signed
from skep.adapters.packs.laying import RECORD, LaidFile, LaidWheel, Record, read_record
from skep.adapters.storage import signing
from skep.adapters.storage.settings_file import SettingsFile
from skep.core import packs, releases
from skep.core.errors import (
    BadInput,
    CheckpointError,
    DataError,
    InvitationError,
    ManifestError,
    NotRunning,
    SettingsError,
    StorageError,
    UpdateError,
)
from skep.core.findings import from_line
from skep.core.packs import Pack, PackKind, PackList, Wheel
from skep.core.project import invitation, links, revocation, signed_checkpoint
from skep.core.project.data import ImageLayout, ShardIndex, ShardRef, TextLayout
from skep.core.project.met_peers import met
from skep.core.project.shards import format_index, parse_index, sample_bytes
from skep.core.project.signed_checkpoint import CheckpointFile
from skep.core.session import messages, wire
from skep.core.session.control import decide, snapshot_of, status
from skep.core.session.snapshot import Snapshot
from skep.core.strict_json import read_object
from skep.core.text import Problem, as_data, verbatim
from skep.host.server.state_keeper import _record
from skep.recipes.registry import open_recipe, parse_manifest
from skep.recipes.tensors.tokenizer_file import open_tokenizer
from skep.worker.connection import guards
from skep.worker.connection.auth import peer_of_key
from skep.worker.self_test import looked_up
from skep.worker.swarm.averaging.groups import epoch_told, from_message
from skep.worker.swarm.state.asked import BrokenOffError, BusyError
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder
from skep.worker.swarm.state.checkpoints import read as read_checkpoint
from skep.worker.swarm.state.choice import in_order
from skep.worker.swarm.state.donor import Offer, Place
from skep.worker.swarm.state.download import Partial, Progress, Wanted, _readable, _take
from skep.worker.swarm.state.pieces import Piece, Refusal
from skep.worker.training.data import open_shard

SECONDS, MEGABYTES = 1.0, 256.0
"""The bounds for one case, and for all of a parser's together."""
PEER_ID = PEER.rpartition("/")[2]


@dataclass(frozen=True)
class Parser:
    """`read` takes bytes, and raises nothing but `refusals` for bad ones. `seeds` are good ones."""

    read: Callable[[bytes], object]
    refusals: type[Exception] | tuple[type[Exception], ...]
    seeds: list[bytes]


# --- the parsers


def _accepted(*_):
    """In place of a signature's check, so that what is behind it is reached."""
    return True


def _manifest(_):
    recipes = [example()["recipe"], images(), masked()]
    return Parser(parse_manifest, ManifestError, [raw(recipe=recipe) for recipe in recipes])


def _signature(folder):
    text, signature_file, _ = signing.load_verified(signed(folder))
    return Parser(lambda case: signing.check(text, case), ManifestError, [signature_file])


def _invitation(_):
    project = Project()
    seeds = [project.invite(PEER_ID).encode(), Project("moderated").invite(PEER_ID, role="host").encode()]
    return Parser(lambda case: invitation.read(case, _accepted), InvitationError, seeds)


def _revocations(_):
    return Parser(
        lambda case: revocation.read(case, _accepted),
        InvitationError,
        [Project().revoke(PEER_ID).encode()],
    )


def _signed_checkpoint(_):
    return Parser(
        lambda case: signed_checkpoint.read(case, _accepted),
        CheckpointError,
        [Project("open").note(CheckpointFile("run", 40, "a" * 64, 5)).encode()],
    )


def _link(_):
    seeds = [
        links.link_to("https://example.org/a.json", bytes(32)),
        links.link_to("https://[2001:db8::1]:8/x", b"k" * 32),
    ]
    return Parser(
        lambda case: links.parse(case.decode("utf-8", "surrogateescape")), BadInput, [each.encode() for each in seeds]
    )


def _index(layout):
    samples = 3
    shards = [ShardRef(letter * 64, samples * sample_bytes(layout)[0] + 80, samples) for letter in "abc"]
    seed = format_index(ShardIndex(layout, tuple(shards[:2]), held_out=tuple(shards[2:])))
    return lambda _: Parser(lambda case: parse_index(case, layout), DataError, [seed])


def _cpu_pack():
    wheel = Wheel("torch", "2.13.0", "torch-2.13.0-cp311-cp311-linux_x86_64.whl", "a" * 64, 100, 300)
    return Pack("cpu", PackKind.CPU, "2.13.0", (wheel,), left_out=("torch/test/*",), kept=("torch/test/keep.py",))


def _packs(_):
    return Parser(packs.read_packs, UpdateError, [packs.write_packs(PackList((_cpu_pack(),)))])


def _notice(_):
    notice = releases.notice(releases.Release("1.2.3", "skep-1.2.3-linux-x86_64.tar.xz", 10**9, "Faster."))
    return Parser(releases.read_notice, UpdateError, [json.dumps(notice).encode()])


def _from_worker(_):
    problem = Problem(verbatim("It rains."), verbatim("Wait."))
    said = [make_joined(), messages.ShardWanted("a" * 64), messages.WorkerFailed(problem, retry=True)]
    return Parser(wire.decode_from_worker, wire.WireError, [wire.encode(each) for each in said])


def _to_worker(_):
    told = [messages.WorkerOptions(manifest="{}", index=make_index()), messages.SetShare(0.5, present=True)]
    return Parser(wire.decode_to_worker, wire.WireError, [wire.encode(each) for each in told])


def _control_request(_):
    seen = Snapshot(project=make_project())
    asked = [
        {"verb": "settings", "values": {"compute.share_away": 0.5}},
        {"verb": "pause", "until": 9.5},
        {"verb": "explain", "if": ["battery"]},
    ]
    return Parser(
        lambda case: decide(read_object(case, 10**6, BadInput), seen),
        BadInput,
        [json.dumps(each).encode() for each in asked],
    )


def _control_answer(_):
    answer = json.dumps(status(Snapshot(project=make_project()))).encode()
    return Parser(lambda case: snapshot_of(read_object(case, 10**6, BadInput)), (BadInput, NotRunning), [answer])


def _finding(_):
    seed = {
        "id": "seed",
        "state": "ok",
        "subject": "x",
        "seconds": 0.1,
        "found": as_data(verbatim("x")),
        "advice": as_data(verbatim("y")),
    }
    return Parser(from_line, ValueError, [json.dumps(seed).encode()])


def _settings(folder):
    path = folder / "settings.toml"

    def read(case):
        path.write_bytes(case)
        SettingsFile(path).load()

    seeds = ["[compute]\nshare_away = 40 # percent\n[when]\nhours = 'mon 08:00-12:00'\n", "[disk]\ncache_gb = 2.5\n"]
    return Parser(read, (SettingsError, StorageError), [each.encode() for each in seeds])


def _checkpoint(folder):
    recipe = example()["recipe"] | {"model": {"type": "gpt2", "layers": 1, "heads": 1, "width": 8, "vocabulary": 256}}
    text = raw(recipe=recipe)
    manifest = parse_manifest(text)
    named = dict(open_recipe(manifest.recipe).build().named_parameters())
    path = CheckpointFolder(folder, 1).write(Checkpoint("run", 3, text.decode(), named, [torch.ones(2)]))
    seed, case_path = path.read_bytes(), folder / "case.safetensors"

    def read(case):
        case_path.write_bytes(case)
        read_checkpoint(case_path)

    return Parser(read, StorageError, [seed])


def _shard(layout, **tensors):
    def made(folder):
        path = folder / "shard"

        def read(case):
            path.write_bytes(case)
            open_shard(path, ShardRef("a" * 64, len(case), 2), layout)

        return Parser(read, DataError, [save(tensors)])

    return made


def _tokenizer(folder):
    path = folder / "tokenizer.json"

    def read(case):
        path.write_bytes(case)
        open_tokenizer(path)

    return Parser(read, DataError, [Tokenizer(WordLevel({"a": 0, "b": 1}, "a")).to_str().encode()])


def _looked_up(_):
    guards.install()

    def read(case):
        assert looked_up(case)[b"good"].value == 1

    good = [{"epoch": 3, "peer": b"x"}, [1.5, None, ("a", 2)], b"bytes"]
    return Parser(read, (), [MSGPackSerializer.dumps(each) for each in good])


def _dht_record(_):
    guards.install()
    guard = guards.RecordGuard()

    def read(case):
        for subkey, value in ((DHTProtocol.serializer.dumps(b"peer"), case), (case, DHTProtocol.serializer.dumps(1))):
            guard.validate(DHTRecord(b"key", subkey, value, get_dht_time() + 1))

    return Parser(read, (), [MSGPackSerializer.dumps({"epoch": 3}), MSGPackSerializer.dumps(b"peer")])


def _member(_):
    def read(case):
        epoch_told(case)
        from_message(case)

    return Parser(read, (), [MSGPackSerializer.dumps((1.0, 0, MSGPackSerializer.dumps(None))), b"12"])


def _state(_):
    tensor = serialize_torch_tensor(torch.ones(4))
    of_stock = MSGPackSerializer.dumps({"epoch": 3})
    metadata = msgspec.msgpack.encode(Offer("copy", of_stock))
    seeds = [
        averaging_pb2.DownloadData(tensor_part=tensor),
        averaging_pb2.DownloadData(tensor_part=tensor, metadata=metadata),
        averaging_pb2.DownloadData(tensor_part=tensor, metadata=of_stock),
    ]

    def read(case):
        frame = averaging_pb2.DownloadData.FromString(case)
        for ours in (True, False):
            partial = Partial(Wanted((Piece((4,), torch.float32, 16),), (0, 5)), Progress())
            with contextlib.suppress(Refusal, BusyError, BrokenOffError), _readable():
                _take(frame, partial, ours=ours)

    return Parser(read, DecodeError, [each.SerializeToString() for each in seeds])


def _place(_):
    seed = msgspec.msgpack.encode(Place("copy", 2, 64, (b"digest", b"digest")))
    return Parser(lambda case: msgspec.msgpack.decode(case, type=Place), (ValueError, RecursionError), [seed])


def _values(read):
    """Gives the decoded value of a case to `read`."""

    def decoded(case):
        try:
            value = MSGPackSerializer.loads(case)
        except Exception:  # noqa: BLE001 - undecodable values do not come as far as `read`
            return
        read(value)

    return decoded


def _offers(_):
    """What donors publish in the DHT: any value under any key."""
    peer = PeerID.from_base58(PEER_ID).to_bytes()

    def read(value):
        in_order({peer: value}, set())
        in_order(value if isinstance(value, dict) else {MSGPackSerializer.dumps(value): 1.0}, set())

    return Parser(_values(read), (), [MSGPackSerializer.dumps(each) for each in ({peer: 3.0, b"x": 4.0}, 7.0)])


def _progress(_):
    """A record of a trainer, as a state keeper reads it."""
    good = {
        "peer_id": b"x",
        "epoch": 3,
        "samples_accumulated": 5,
        "samples_per_second": 1.0,
        "time": 1.0,
        "client_mode": False,
    }

    return Parser(_values(_record), (), [MSGPackSerializer.dumps(good)])


def _key(_):
    public = RSAPrivateKey().get_public_key().to_bytes()
    return Parser(peer_of_key, (), [public])


def _met(_):
    seed = json.dumps([{"address": PEER, "met": 5.0}]).encode()
    return Parser(lambda case: met(case, 6.0), (), [seed])


def _laid(folder):
    laid = {"a" * 64: LaidWheel({"torch/x.py": LaidFile("c" * 64, 5)}, ())}
    seed = msgspec.json.encode(Record(_cpu_pack(), laid))

    def read(case):
        (folder / RECORD).write_bytes(case)
        read_record(folder)

    return Parser(read, (), [seed])


TEXT, IMAGES = TextLayout(4, 256), ImageLayout(channels=3, size=4, classes=5)
PARSERS: dict[str, Callable[[Path], Parser]] = {
    "manifest": _manifest,
    "signature of a manifest": _signature,
    "invitation": _invitation,
    "list of revoked invitations": _revocations,
    "note of a signed checkpoint": _signed_checkpoint,
    "join link": _link,
    "index of texts": _index(TEXT),
    "index of images": _index(IMAGES),
    "list of packs": _packs,
    "notice of a version": _notice,
    "message of the worker": _from_worker,
    "message to the worker": _to_worker,
    "request to a running skep": _control_request,
    "answer of a running skep": _control_answer,
    "finding of the doctor's process": _finding,
    "settings file": _settings,
    "checkpoint": _checkpoint,
    "shard of texts": _shard(TEXT, tokens=torch.zeros(2, 4, dtype=torch.uint8)),
    "shard of images": _shard(
        IMAGES, pixels=torch.zeros(2, 3, 4, 4, dtype=torch.uint8), labels=torch.zeros(2, dtype=torch.int32)
    ),
    "tokenizer file": _tokenizer,
    "look-up in the DHT": _looked_up,
    "record in the DHT": _dht_record,
    "what a group's member says": _member,
    "frame of a state": _state,
    "where a transfer goes on": _place,
    "offers of a state": _offers,
    "record of a trainer": _progress,
    "public key": _key,
    "peers that were met": _met,
    "record of a pack": _laid,
}


# --- cases


ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 0.1, -0.0, 1e308, math.inf, math.nan,
    "", " ", "\0", "\ud800", "é" * 100, "a" * 5000, "../up", "/etc/passwd", "https://x.example/", "9" * 400,
    [], {}, [[]], [None] * 300, {"": None}, {"a": {"b": {}}},
]  # fmt: skip


MANY = 1_000
"""A list that long is not made longer."""


def case_of(name: str, number: int, seeds: list[bytes]) -> bytes:
    """The case of this number, at most a few MB."""
    chance = random.Random(f"{name} {number}")
    seed = chance.choice(seeds)
    try:
        document = json.loads(seed)
    except ValueError:
        document = None
    if isinstance(document, dict) and chance.random() < 0.6:
        for _ in range(chance.choice((1, 2, 3, 5))):
            _change_document(document, chance)
        return json.dumps(document, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((1, 2, 4, 16))):
        seed = _changed_bytes(seed, chance, seeds)
    return seed


def _change_document(document, chance):
    """One place of it is replaced, removed, renamed, repeated or nested."""
    holder = document
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not places:
            return
        place = chance.choice(places)
        if not isinstance(holder[place], dict | list) or not holder[place] or chance.random() < 0.1:
            break
        holder = holder[place]
    match chance.randrange(6):
        case 0:
            del holder[place]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(("", "unknown", "__class__", str(place).upper()))] = holder.pop(place)
        case 2 if isinstance(holder, list) and len(holder) < MANY:
            holder.extend(list(holder) * chance.choice((1, 3, 30)))
        case 3:
            for _ in range(chance.choice((1, 5, 40, 200))):
                holder[place] = chance.choice(([holder[place]], {"a": holder[place]}))
        case _:
            holder[place] = deepcopy(chance.choice(ODD))


def _changed_bytes(data, chance, seeds):
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 2, 4, 8, 64)))
    match chance.randrange(9):
        case 0:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + chance.randbytes(chance.choice((1, 2, 8, 100))) + data[at:]
        case 2:
            return data[:at] + data[end:]
        case 3:
            return data[:at]
        case 4:
            return data[:at] + data[at:end] * chance.choice((2, 9, 500)) + data[end:]
        case 5:
            other = chance.choice(seeds)
            return data[:at] + other[chance.randrange(len(other) + 1) :]
        case 6:
            return (
                data[:at]
                + chance.choice((b"[", b'{"a":', b"\xff", b"\x00", b"\x91", b"\xc7\x01\x40")) * 3000
                + data[at:]
            )
        case 7:
            return data[:at] + chance.choice((b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x00" * 8)) + data[at + 8 :]
        case _:
            return chance.randbytes(chance.randrange(300))


# --- running


@dataclass
class Outcome:
    """Of the cases of one parser: `refused` by a declared error, `failed` otherwise; `failures` are the first of those.

    `slowest` is in seconds of processor time.
    """

    refused: int = 0
    failed: int = 0
    slowest: float = 0.0
    megabytes: float = 0.0
    failures: list[str] = field(default_factory=list)


FAILURES_KEPT = 5
SHOWN = 200
"""Characters of a failure, and bytes of its case."""
WAIT_SECONDS = 10.0
"""No parser waits that long for anything."""
STUCK_SECONDS = 60.0
"""After so long, a case counts as one that never ends."""
LIMIT_MEGABYTES = 4_000.0
"""What a process may have: more than MEGABYTES, so that what a parser asks for is seen, and the computer is safe."""


def run(name: str, numbers: range, folder: Path) -> Outcome:
    """Read the cases of these numbers, in a process of their own."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    at = context.Value("q", numbers.start, lock=False)
    process = context.Process(target=_run, args=(name, numbers, folder, sending, at))
    process.start()
    sending.close()
    seen = numbers.start - 1
    try:
        while not receiving.poll(STUCK_SECONDS):
            if (stuck := at.value) == seen:
                return Outcome(failed=1, failures=[f"{stuck}: it never ends"])
            seen = stuck
        return receiving.recv()
    except EOFError:
        return Outcome(failed=1, failures=[f"{at.value}: the process ended"])
    finally:
        process.kill()
        process.join()


def _run(name, numbers, folder, sending, at):
    logging.disable()  # of bad documents
    parser = PARSERS[name](folder)
    for seed in parser.seeds:
        parser.read(seed)
    before = _peak()
    _limit_memory()
    made = Outcome()
    for number in numbers:
        at.value = number
        case = case_of(name, number, parser.seeds)
        begun, seen = time.process_time(), time.monotonic()
        try:
            parser.read(case)
        except parser.refusals:
            made.refused += 1
        except BaseException as error:  # noqa: BLE001 - also a panic of a library in Rust
            made.failed += 1
            if len(made.failures) < FAILURES_KEPT:
                made.failures.append(f"{number}: {type(error).__name__}: {error}"[:SHOWN] + f" {case[:SHOWN]!r}")
        made.slowest = max(made.slowest, time.process_time() - begun)
        if time.monotonic() - seen > WAIT_SECONDS:
            made.failed += 1
            made.failures.append(f"{number}: it waited {case[:SHOWN]!r}")
    made.megabytes = _peak() - before
    sending.send(made)


def _peak() -> float:
    """The largest resident size of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + round(LIMIT_MEGABYTES * 1e6), resource.RLIM_INFINITY))
