"""
What kind an IP address is.

The lists are our own, because the standard library's `is_global` differs between Python versions and is true for
multicast, for 192.0.0.8, and for IPv6 forms that carry a private IPv4 address inside.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

FAKE = IPv4Network("198.18.0.0/15")
"""What some local proxies answer for every name, to see the name again when the connection comes."""

_PRIVATE_4 = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")))
_NOT_PUBLIC_4 = (
    *_PRIVATE_4,
    FAKE,
    *map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "127.0.0.0/8",
            "168.63.129.16/32",  # a cloud's metadata service on a public address
            "169.254.0.0/16",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.175.48.0/24",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    ),
)

_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST_6 = IPv6Network("2000::/3")
_PRIVATE_6 = IPv6Network("fc00::/7")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo, ORCHID and benchmarking
            "2001:db8::/32",
            "2002::/16",  # 6to4: carries any IPv4 address, and nobody serves files there
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)


def is_public(address: Address) -> bool:
    """
    Whether the address is public unicast, also as seen through the forms that carry an IPv4 address inside.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    if address in _MAPPED or address in _NAT64:
        return is_public(_carried(address))
    return address in _UNICAST_6 and not any(address in network for network in _NOT_PUBLIC_6)


def is_private(address: Address) -> bool:
    """
    Whether the address lies in a private network (RFC 1918, unique local, or the shared space of overlay networks).
    """
    if isinstance(address, IPv4Address):
        return any(address in network for network in _PRIVATE_4)
    if address in _MAPPED:
        return is_private(_carried(address))
    return address.scope_id is None and address in _PRIVATE_6


def is_loopback(address: Address) -> bool:
    """
    Whether the address is this machine's own loopback.
    """
    return address.is_loopback and not (isinstance(address, IPv6Address) and address.scope_id is not None)


def _carried(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)
