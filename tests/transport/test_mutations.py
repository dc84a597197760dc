"""
However an address is spelled, it leads to a host of the account's list or nowhere.
"""

from .mutations import try_all


async def test_no_tricky_address_and_no_mutation_of_one_gets_a_lookup_or_a_connection() -> None:
    """
    A share of the 10,000 mutations that `tests/security/proof.py` tries.
    """
    tried = await try_all(mutations=1500, seed=3)
    assert tried.tricky >= 300
    assert (tried.mutations, tried.lookups, tried.connections) == (1500, 0, 0)
    assert tried.listed < 100
