"""A small computation on the graphics cards by their drivers alone, to find out whether the sandbox keeps them from it.

NVIDIA: the CUDA driver API (docs.nvidia.com/cuda/cuda-driver-api), with a kernel that the driver compiles. AMD: one call
to the kernel's driver (linux/kfd_ioctl.h), since ROCm's libraries come with torch. torch is not loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from skep.worker.sandbox.trial import why_it_fails

DEVICES: Final = Path("/dev")
_NVIDIA: Final = ("nvidiactl", "dxg")
"""Files of the driver; the second one is Windows' in WSL."""
_AMD: Final = "kfd"
CUDA: Final = "libcuda.so.1"
_CUDA_SUCCESS: Final = 0
_BYTES: Final = 1 << 20
_KERNEL: Final = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n\0"
_KFD_GET_VERSION: Final = 0x80084B01
"""AMDKFD_IOC_GET_VERSION: _IOR('K', 1, two 32-bit integers)."""


def has_cards(devices: Path = DEVICES) -> bool:
    """Whether this computer has files of a card's driver that `compute_on_cards` would use."""
    return any((devices / name).exists() for name in (*_NVIDIA, _AMD))


def why_blocked(confine: Callable[[], object], compute: Callable[[], object]) -> str:
    """What fails on a card after `confine` and works without it; empty if nothing does.

    `compute` raises OSError with the name of its first step that fails.
    """

    def confined() -> None:
        confine()
        compute()

    reason = why_it_fails(confined)
    return reason if reason and reason != why_it_fails(compute) else ""


def compute_on_cards(devices: Path = DEVICES) -> None:
    """Use every kind of card that this computer has. Raises OSError."""
    if any((devices / name).exists() for name in _NVIDIA):
        _nvidia()
    if (devices / _AMD).exists():
        _amd(devices / _AMD)


def _nvidia() -> None:
    cuda = ctypes.CDLL(CUDA)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    memory, module, function = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
    _ask(cuda, "cuInit", 0)
    _ask(cuda, "cuDeviceGet", ctypes.byref(device), 0)
    _ask(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    _ask(cuda, "cuCtxSetCurrent", context)
    _ask(cuda, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(_BYTES))
    _ask(cuda, "cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(_BYTES))
    _ask(cuda, "cuModuleLoadData", ctypes.byref(module), _KERNEL)
    _ask(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"nothing")
    _ask(cuda, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    _ask(cuda, "cuCtxSynchronize")


def _ask(cuda: Any, name: str, *arguments: Any) -> None:
    code = getattr(cuda, name)(*arguments)
    if code != _CUDA_SUCCESS:
        raise OSError(f"the NVIDIA driver answers {name} with error {code}")


def _amd(kfd: Path) -> None:
    import fcntl  # noqa: PLC0415 - Windows has none

    with kfd.open("r+b", buffering=0) as opened:
        fcntl.ioctl(opened, _KFD_GET_VERSION, bytearray(8))
