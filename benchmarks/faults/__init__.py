"""Faults injected into a running skep from outside, and what each costs: `make test-faults PART=…`."""
