"""
What a host's name tells without asking anybody.
"""

import pytest

from vidrelay.core.hosts import is_loopback_host, web_address_fault


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_the_machines_own_hosts_are_told_from_others(host: str, *, own: bool) -> None:
    """
    The name localhost and loopback addresses are this machine's, and nothing else is.
    """
    assert is_loopback_host(host) is own


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/x.png",
        "HTTPS://A.Example:8443/x?y=@z#w",
        "https://xn--fsq.example./片.png",
        "https://8.8.8.8/x.png",
        "https://[2606:4700::1111]/x.png",
        "https://1.example/x.png",
        "https://x/y.png",
    ],
)
def test_a_web_address_is_taken(url: str) -> None:
    """
    A provider may be told to fetch what is at a host on the internet, over TLS.
    """
    assert web_address_fault(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/x.png",
        "ftp://a.example/x.png",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "a.example/x.png",
        "https:a.example",
        "https://",
        "https:///x.png",
        "https://:443/x.png",
        "https://a.example:0/x",
        "https://a.example:99999/x",
        "https://a.example:x/x",
        "https://user@a.example/x",
        "https://user:word@a.example/x",
        "https://@a.example/x",
        "https://a.example\\@b.example/x",
        "https://a.exa mple/x",
        " https://a.example/x",
        "https://a.example/x\n",
        "https://a.example/\u00a0",
        "https://a.exa%6dple/x",
        "https://例え.example/x",
        "https://１27.0.0.1/x",
        "https://localhost/x",
        "https://LOCALHOST./x",
        "https://a.localhost/x",
        "https://127.0.0.1/x",
        "https://127.0.0.1./x",
        "https://127.1/x",
        "https://2130706433/x",
        "https://0x7f000001/x",
        "https://0177.0.0.1/x",
        "https://a.0x7f/x",
        "https://0.0.0.0/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/x",
        "https://192.168.0.1/x",
        "https://198.18.0.1/x",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://[64:ff9b::7f00:1]/x",
        "https://[fe80::1%25eth0]/x",
        "https://[fd00::1]/x",
        "https://[a.example]/x",
        "https://[::1/x",
    ],
)
def test_an_address_that_leads_elsewhere_is_none(url: str) -> None:
    """
    No other scheme, no credentials, and neither this machine nor a private network in any spelling.
    """
    assert web_address_fault(url) is not None
