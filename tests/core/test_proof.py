"""
Proving the token without sending it.
"""

import pytest

from vidrelay.core.proof import TOKEN_PREFIX, client_proof, is_nonce, is_token, proves, server_proof

TOKEN, NONCE = "vrl_secret", "0f" * 32


def test_the_arithmetic_is_hmac_sha256_as_written_down():
    """
    Both proofs equal the HMAC-SHA256 that the contract spells out, computed here by hand.
    """
    import hashlib
    import hmac

    client = hmac.new(TOKEN.encode(), f"client{NONCE}61500".encode(), hashlib.sha256).hexdigest()
    server = hmac.new(TOKEN.encode(), f"server{NONCE}61500i-1".encode(), hashlib.sha256).hexdigest()
    assert client_proof(TOKEN, nonce=NONCE, port=61500) == client
    assert server_proof(TOKEN, nonce=NONCE, port=61500, instance="i-1") == server


def test_a_proof_is_good_for_its_token_nonce_and_port_alone():
    """
    Another token, nonce, port or side of the conversation makes another proof.
    """
    proof = client_proof(TOKEN, nonce=NONCE, port=61500)
    others = {
        client_proof(TOKEN + "x", nonce=NONCE, port=61500),
        client_proof(TOKEN, nonce="1f" * 32, port=61500),
        client_proof(TOKEN, nonce=NONCE, port=61501),
        server_proof(TOKEN, nonce=NONCE, port=61500, instance=""),
    }
    assert proof not in others
    assert len(others) == 4


@pytest.mark.parametrize(
    "value", ["", "0f", "0F" * 32, "0f" * 33, "0f" * 31 + "0\n", "zz" * 32, "０" * 64, None, 5, b"x"]
)
def test_only_64_small_hexadecimal_digits_are_a_nonce(value):
    """
    A nonce of another length, alphabet, case or type is refused.
    """
    assert not is_nonce(value)


@pytest.mark.parametrize("mac", ["", "x", "é" * 64, "0F" * 32, None, 5, [], b"0f" * 32])
def test_what_is_no_mac_proves_nothing(mac):
    """
    A value of the wrong length, case, alphabet or type proves nothing, and raises nothing.
    """
    assert not proves(mac, "0f" * 32)


def test_the_same_mac_proves():
    """
    A well-formed nonce is recognised, and a MAC proves when it equals the expected one.
    """
    assert is_nonce(NONCE)
    assert proves("0f" * 32, "0f" * 32)


def test_a_token_begins_with_our_mark_and_has_at_least_16_characters_after_it():
    """
    A token has our prefix and 16 to 256 characters after it, and no line break.
    """
    assert is_token(TOKEN_PREFIX + "a" * 16)
    wrong = [None, 5, "", TOKEN_PREFIX, TOKEN_PREFIX + "a" * 15, TOKEN_PREFIX + "a" * 257, "sk-" + "a" * 40]
    assert [value for value in [*wrong, TOKEN_PREFIX + "a" * 16 + "\n"] if is_token(value)] == []
