"""
What a host's name tells without asking anybody.
"""

import ipaddress


def is_loopback_host(host: str) -> bool:
    """
    Whether the name or address, as text without brackets, is this machine's own and reached by no other.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
