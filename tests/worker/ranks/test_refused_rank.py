"""A rank that has refused the model lives on, for a group that shares it."""

from manifests import raw
from skep.recipes.registry import parse_manifest
from skep.worker.ranks import orders
from skep.worker.ranks.rank import Rank


def test_it_is_told_in_vain_to_recompute_activations():
    rank = Rank(parse_manifest(raw()))
    rank._do(orders.Recompute())
    assert not hasattr(rank, "_group")
