"""The device as torch sees it: picks one, or says in plain words why it cannot be used. It must not train."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from typing import Final

import psutil
import torch

from skep.core.errors import DoesNotFit

CPU: Final = torch.device("cpu")
_TRIAL_SIZE: Final = 16


@dataclass(frozen=True)
class TrainingDevice:
    """One device, and the precision it computes in: "fp32", or "bf16" (autocast; parameters stay fp32)."""

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


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch lists as cuda:N. `memory` in bytes; `bf16` when it computes in bfloat16 itself."""

    name: str
    memory: int
    bf16: bool


@dataclass(frozen=True)
class TorchFacts:
    """What this PyTorch was built for and finds here.

    `toolkit` is "CUDA 12.8", "ROCm 6.4" or ""; `complaint` is what torch said when its toolkit would not start.
    """

    toolkit: str = ""
    gpus: tuple[Gpu, ...] = ()
    complaint: str = ""
    mps_built: bool = False
    mps_available: bool = False


def look() -> TorchFacts:
    """Ask torch. Starts the GPU's driver for this process where there is one, and uses no GPU memory."""
    # torch's own order is by speed; the engine lists cards by their place on the bus, and cuda:0 must mean the same
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        gpus = _gpus() if torch.cuda.is_available() else ()
    return TorchFacts(
        _toolkit(),
        gpus,
        _first_sentence(str(complaints[0].message)) if complaints else "",
        torch.backends.mps.is_built(),
        torch.backends.mps.is_available(),
    )


def pick(wanted: str, precision: str, facts: TorchFacts | None = None) -> TrainingDevice:
    """The device named `wanted` ("cpu", "cuda:0", "mps"; "" for the best there is), in the manifest's `precision`.

    A GPU is taken after a first small computation on it. Raises DoesNotFit when torch cannot use what is wanted.
    """
    facts = facts or look()
    device = _checked(wanted, facts) if wanted else _best(facts)
    return TrainingDevice(device, _name_of(device, facts), choose_precision(precision, device, facts))


def why_not(device: torch.device, facts: TorchFacts | None = None) -> str:
    """Why torch cannot use the device, as the end of a sentence; empty when nothing speaks against it."""
    facts = facts or look()
    match device.type:
        case "cpu":
            return ""
        case "cuda":
            return _why_not_cuda(device.index or 0, facts)
        case "mps":
            if not facts.mps_built:
                return "this PyTorch was built without Apple GPU support"
            return "" if facts.mps_available else "this Mac or its macOS does not offer its GPU to PyTorch"
        case _:
            return "skep does not know this kind of device"


def choose_precision(wanted: str, device: torch.device, facts: TorchFacts | None = None) -> str:
    """What "auto" means here: bf16 on GPUs that compute in it, else fp32."""
    if wanted == "auto" and device.type == "cuda" and (facts or look()).gpus[device.index or 0].bf16:
        return "bf16"
    return "fp32"


def set_threads(wanted: int) -> None:
    """Processor threads for training; 0 means half the physical cores this process may use, at least one."""
    torch.set_num_threads(wanted or max(1, _cores() // 2))


def _cores() -> int:
    physical = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    # a container may be given fewer; macOS cannot tell
    return min(physical, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else physical


def _toolkit() -> str:
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else ""


def _gpus() -> tuple[Gpu, ...]:
    return tuple(_gpu(index) for index in range(torch.cuda.device_count()))


def _gpu(index: int) -> Gpu:
    told = torch.cuda.get_device_properties(index)
    with torch.cuda.device(index):
        return Gpu(told.name, told.total_memory, torch.cuda.is_bf16_supported(including_emulation=False))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ", maxsplit=1)[0].rstrip(".")


def _checked(wanted: str, facts: TorchFacts) -> torch.device:
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise DoesNotFit(
            f'"{wanted}" is not the name of a device.', "Use cpu, cuda:0 (cuda:1, …) or mps, or leave it empty."
        ) from None
    if reason := why_not(device, facts) or _try(device):
        raise DoesNotFit(f"Training cannot use {wanted}: {reason}.", "`skep devices` lists what can be used.")
    return device


def _best(facts: TorchFacts) -> torch.device:
    """The GPU with the most memory that computes, else the processor."""
    by_memory = sorted(range(len(facts.gpus)), key=lambda index: -facts.gpus[index].memory)
    candidates = [torch.device("cuda", index) for index in by_memory]
    if facts.mps_available:
        candidates.append(torch.device("mps"))
    return next((device for device in candidates if not _try(device)), CPU)


def _why_not_cuda(index: int, facts: TorchFacts) -> str:
    count = len(facts.gpus)
    if index < count:
        return ""
    if not facts.toolkit:
        return "this PyTorch was built without CUDA"
    if facts.complaint:
        return f"{facts.toolkit} does not start ({facts.complaint})"
    if not count:
        return f"this PyTorch is built for {facts.toolkit} and finds no working GPU"
    return "there is only one GPU" if count == 1 else f"there are only {count} GPUs"


def _try(device: torch.device) -> str:
    """Why a first small computation fails, as the end of a sentence; empty when it works."""
    try:
        ones = torch.ones(_TRIAL_SIZE, _TRIAL_SIZE, device=device)
        float((ones @ ones).sum())
    except torch.OutOfMemoryError:
        return "its memory is full"
    except RuntimeError as error:
        if "no kernel image" in str(error):
            return "this PyTorch was not built for this model of card"
        return _first_sentence(str(error).partition("\n")[0]) or "PyTorch does not say why"
    return ""


def _name_of(device: torch.device, facts: TorchFacts) -> str:
    if device.type == "cuda":
        return facts.gpus[device.index or 0].name
    return "Apple GPU" if device.type == "mps" else "CPU"
