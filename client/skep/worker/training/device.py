"""Choosing the device and its precision with torch, and the reasons why a device cannot be used."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import psutil
import torch

from skep.core.errors import DoesNotFit
from skep.core.text import NOTHING, Text, verbatim

CPU: Final = torch.device("cpu")
_TRIAL_SIZE: Final = 16
TENSOR_CORES: Final = 7
"""Major compute capability from which NVIDIA's cards have units for fp16 matrices (Volta); bf16 came with 8 (Ampere)."""
LEAST_FRACTION: Final = 1e-3
BF16_MACOS: Final = (14, 0)
"""The first macOS whose GPU driver computes in bfloat16."""


@dataclass(frozen=True)
class TrainingDevice:
    """One device, and the precision it computes in: "fp32", or by autocast "bf16" or "fp16" (parameters stay fp32)."""

    device: torch.device
    name: str
    precision: str

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread: its processor time on the processor, wall time elsewhere."""
        return time.thread_time() if self.device.type == "cpu" else time.monotonic()

    def synchronize(self) -> None:
        """Return when everything handed to the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    @contextmanager
    def low_priority(self) -> Iterator[None]:
        """Work inside has a lower priority than our other work on the device; synchronise before using results."""
        if self.device.type != "cuda":
            yield
            return
        stream = self._low_priority_stream
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            yield

    @cached_property
    def _low_priority_stream(self) -> torch.cuda.Stream:
        # 0 is the lowest priority; CUDA's default stream has it too, but a separate stream leaves that one free
        return torch.cuda.Stream(self.device, priority=0)

    def empty_caches(self) -> None:
        """Free the device memory that torch has cached and does not use."""
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.empty_cache()
        elif self.device.type == "mps":
            torch.mps.empty_cache()

    def cap_memory(self, leave: int) -> None:
        """Limit torch's memory so that `leave` bytes of what is free now stay free.

        The processor has no such limit.
        """
        if self.device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self.device)
            ours = torch.cuda.memory_reserved(self.device)
            torch.cuda.set_per_process_memory_fraction(fraction_of(free + ours - leave, total), self.device)
        elif self.device.type == "mps":
            total = torch.mps.recommended_max_memory()
            torch.mps.set_per_process_memory_fraction(fraction_of(total - leave, total))


def fraction_of(part: int, total: int) -> float:
    """`part` of `total` for torch: between 0 and 1, and never 0, which would mean no limit."""
    return min(1.0, max(LEAST_FRACTION, part / total))


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch lists as cuda:N. `memory` in bytes; `bf16` when it supports bfloat16 in hardware.

    `quick_fp16` when it multiplies matrices faster in fp16 than in fp32.
    """

    name: str
    memory: int
    bf16: bool
    quick_fp16: bool = False

    @property
    def best_precision(self) -> str:
        """bf16 if supported, else fp16 if it is fast, else fp32."""
        return "bf16" if self.bf16 else "fp16" if self.quick_fp16 else "fp32"


@dataclass(frozen=True)
class TorchFacts:
    """What this PyTorch was built for and which GPUs it finds.

    `toolkit` is "CUDA 12.8", "ROCm 6.4" or ""; `complaint` is torch's error message if its toolkit does not start.
    """

    toolkit: str = ""
    gpus: tuple[Gpu, ...] = ()
    complaint: str = ""
    mps_built: bool = False
    mps_available: bool = False
    mps_bf16: bool = False


def look() -> TorchFacts:
    """Query torch. Starts the GPU's driver for this process if there is one, and uses no GPU memory."""
    # torch orders cards by speed by default; the engine orders them by PCI bus id, and cuda:0 must mean the same card
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        gpus = tuple(map(_gpu, range(torch.cuda.device_count()))) if torch.cuda.is_available() else ()
    return TorchFacts(
        _toolkit(),
        gpus,
        _first_sentence(str(complaints[0].message)) if complaints else "",
        torch.backends.mps.is_built(),
        torch.backends.mps.is_available(),
        torch.backends.mps.is_available() and torch.backends.mps.is_macos_or_newer(*BF16_MACOS),
    )


def try_out(device: torch.device) -> Text:
    """Why a first small computation fails, as the end of a sentence; empty when it works."""
    try:
        ones = torch.ones(_TRIAL_SIZE, _TRIAL_SIZE, device=device)
        float((ones @ ones).sum())
    except RuntimeError as error:
        return failure_words(error)
    return NOTHING


def failure_words(error: RuntimeError) -> Text:
    """Why a computation failed, as the end of a sentence."""
    if isinstance(error, torch.OutOfMemoryError):
        return Text("device.memory_full")
    if "no kernel image" in str(error):
        return Text("device.pytorch_was_not_built_model")
    said = _first_sentence(str(error).partition("\n")[0])
    return verbatim(said) if said else Text("device.pytorch_does_not_say_why")


def pick(
    wanted: str,
    precision: str,
    facts: TorchFacts | None = None,
    trial: Callable[[torch.device], Text] = try_out,
) -> TrainingDevice:
    """The device named `wanted` ("cpu", "cuda:0", "mps"; "" for the best one), in the manifest's `precision`.

    A GPU is used only if `trial`, a small computation on it, succeeds. Raises DoesNotFit when torch cannot use the
    device, or the device does not support that precision.
    """
    facts = facts or look()
    device = _checked(wanted, facts, trial) if wanted else _best(facts, precision, trial)
    return TrainingDevice(device, _name_of(device, facts), choose_precision(precision, device, facts))


def why_not(device: torch.device, facts: TorchFacts) -> Text:
    """Why torch cannot use the device, as the end of a sentence; empty when it can."""
    match device.type:
        case "cpu":
            return NOTHING
        case "cuda":
            return _why_not_cuda(device.index or 0, facts)
        case "mps":
            if not facts.mps_built:
                return Text("device.pytorch_was_built_without_apple")
            return NOTHING if facts.mps_available else Text("device.mac_macos_does_not_offer")
        case _:
            return Text("device.skep_does_not_know_kind")


def choose_precision(wanted: str, device: torch.device, facts: TorchFacts) -> str:
    """The precision to compute in. "auto" is the best precision of an NVIDIA or AMD GPU, else fp32.

    Raises DoesNotFit when the device does not support `wanted`.
    """
    if wanted == "auto":
        return facts.gpus[device.index or 0].best_precision if device.type == "cuda" else "fp32"
    if not has_precision(device, wanted, facts):
        raise DoesNotFit(
            Text("device.project_computes_cannot", wanted=wanted, device=_name_of(device, facts)),
            Text("device.setting_can_choose_processor_slow", setting="compute.device"),
            remedy="setting:compute.device",
        )
    return wanted


def has_precision(device: torch.device, precision: str, facts: TorchFacts) -> bool:
    """Whether the device supports `precision` in hardware; torch's emulation of bf16 on old cards does not count."""
    if precision != "bf16" or device.type not in {"cuda", "mps"}:
        return True
    return facts.gpus[device.index or 0].bf16 if device.type == "cuda" else facts.mps_bf16


PRESENT_CORES: Final = 8
"""Cores per thread while the computer is in use: a job on all cores waits for the slowest one."""


class Threads:
    """Processor threads for training; `wanted` 0 chooses them by the physical cores this process may use.

    That is half of the cores while this computer is not in use, and fewer while it is. An explicit number always applies.
    As many processes as `ranks` says at present compute on the processor, and share the threads.
    """

    def __init__(self, wanted: int, cores: int | None = None, *, ranks: Callable[[], int] = lambda: 1) -> None:
        cores = cores or usable_cores()
        self._present, self._away = wanted or cores // PRESENT_CORES, wanted or cores // 2
        self._ranks = ranks

    def use(self, *, present: bool) -> None:
        """Set the number of threads for the calling thread's computing from now on."""
        count = max(1, (self._present if present else self._away) // self._ranks())
        if count != torch.get_num_threads():
            torch.set_num_threads(count)


def usable_cores() -> int:
    physical = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    # a container may have fewer; macOS does not report it
    return min(physical, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else physical


def _toolkit() -> str:
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else ""


def _gpu(index: int) -> Gpu:
    told = torch.cuda.get_device_properties(index)
    with torch.cuda.device(index):
        bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    return Gpu(told.name, told.total_memory, bf16, quick_fp16=bf16 or told.major >= TENSOR_CORES)


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ", maxsplit=1)[0].rstrip(".")


def _checked(wanted: str, facts: TorchFacts, trial: Callable[[torch.device], Text]) -> torch.device:
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise DoesNotFit(
            Text("device.not_name_device", wanted=wanted),
            Text("device.use_cpu_cuda_0_cuda"),
            remedy="setting:compute.device",
        ) from None
    if reason := why_not(device, facts) or trial(device):
        raise DoesNotFit(
            Text("device.training_cannot_use", wanted=wanted, reason=reason),
            Text("device.choose_another_setting_leave_empty", setting="compute.device"),
            remedy="setting:compute.device",
        )
    return torch.device("cuda", 0) if wanted == "cuda" else device


def _best(facts: TorchFacts, precision: str, trial: Callable[[torch.device], Text]) -> torch.device:
    """The working GPU with the most memory, else the processor; GPUs that support the precision come first."""
    by_memory = sorted(range(len(facts.gpus)), key=lambda index: -facts.gpus[index].memory)
    candidates = [torch.device("cuda", index) for index in by_memory]
    if facts.mps_available:
        candidates.append(torch.device("mps"))
    candidates.sort(key=lambda device: not has_precision(device, precision, facts))
    return next((device for device in candidates if not trial(device)), CPU)


def _why_not_cuda(index: int, facts: TorchFacts) -> Text:
    count = len(facts.gpus)
    if index < count:
        return NOTHING
    if not facts.toolkit:
        return Text("device.pytorch_was_built_without_cuda")
    if facts.complaint:
        return Text("device.does_not_start", toolkit=facts.toolkit, complaint=facts.complaint)
    if not count:
        return Text("device.pytorch_built_finds_no_working", toolkit=facts.toolkit)
    return Text("device.there_only_one_gpu") if count == 1 else Text("device.there_only_gpus", count=count)


def _name_of(device: torch.device, facts: TorchFacts) -> str:
    if device.type == "cuda":
        return facts.gpus[device.index or 0].name
    return "Apple GPU" if device.type == "mps" else "CPU"
