"""Checking of Ed25519 signatures (RFC 8032), for the engine's adapters and for the worker."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def is_valid(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (64 bytes) of `message` was made with the private part of `key` (32 bytes, raw)."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
