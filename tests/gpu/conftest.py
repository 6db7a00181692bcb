"""The GPU tests run with the PyTorch of the computer that has the card, which may be older than the one that is pinned."""

from torch import distributed as dist

# before PyTorch 2.13 the messages of shards have other names, and the same arguments
for name, older in {
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}.items():
    if not hasattr(dist, name):
        setattr(dist, name, getattr(dist, older))
