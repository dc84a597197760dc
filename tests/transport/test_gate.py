"""
The gate lets out what is listed, and nothing else, however it is spelled.
"""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrelay.core.addresses import is_public
from vidrelay.core.errors import ConfigError, OutboundRefused, TransportError
from vidrelay.core.messages import HttpRequest
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

from .corpus import NOT_PUBLIC, TRICKY
from .servers import PUBLIC, Names, Network

HOSTS = ("api.example.com", "*.cdn.example.com")


def gate(**settings: object) -> Gate:
    return Gate(HOSTS, **settings)


def test_the_corpus_is_as_large_as_the_checklist_asks() -> None:
    """
    The list of tricky addresses has at least 300 different ones.
    """
    assert len(set(TRICKY)) >= 300


@pytest.mark.parametrize("url", TRICKY)
async def test_a_tricky_address_meets_neither_resolver_nor_network(url: str) -> None:
    """
    A tricky address is refused before its name is looked up or anything dialled, surely unsent.
    """
    names, network = Names(), Network()
    transport = HttpTransport(gate(resolve=names), asset_path=lambda _: None, user_agent="x", network=network)
    with pytest.raises(OutboundRefused) as refused:
        async with transport.send(HttpRequest(method="GET", url=url), timeout=1):
            pass
    assert (names.asked, network.dialled, refused.value.maybe_sent) == ([], [], False)


@given(
    st.sampled_from(["https://evil.com/x", "https://127.0.0.1/x", "https://[::1]/x", "https://api.example.com.x.com/"]),
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.sampled_from([*"\\\t\n\r\0@:/?#%.[] ", "%2e", "//", "@api.example.com", "．", "api."]),
        ),
        max_size=3,
    ),
)  # fmt: skip
def test_no_mutation_of_a_foreign_address_leads_to_a_foreign_host(url: str, edits: list[tuple[int, str]]) -> None:
    """
    However a foreign address is edited, it is refused or leads to a listed host.
    """
    for position, text in edits:
        url = url[:position] + text + url[position:]
    try:
        target = gate().admit(url)
    except OutboundRefused:
        return
    assert target.origin == ("https", "api.example.com", 443) or target.host.endswith(".cdn.example.com")


@given(st.text(max_size=80))
def test_any_text_is_either_refused_or_listed(text: str) -> None:
    """
    Any text, alone or put into an address, is refused or leads to the listed host by a clean target.
    """
    for url in (text, f"https://{text}", f"https://api.example.com{text}", f"https://api.example.com/{text}"):
        try:
            target = gate().admit(url)
        except OutboundRefused:
            continue
        assert target.host == "api.example.com"
        assert target.target.isascii()
        assert " " not in target.target


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("https://api.example.com", "api.example.com", "/"),
        ("https://API.Example.COM:443/a?b=c&d[]=%2F#frag", "api.example.com", "/a?b=c&d[]=%2F"),
        ("HTTPS://x.cdn.example.com/v.mp4", "x.cdn.example.com", "/v.mp4"),
        ("https://a.b.cdn.example.com//double//slash", "a.b.cdn.example.com", "//double//slash"),
        ("https://x.cdn.example.com/片 段.mp4?s=é", "x.cdn.example.com", "/%E7%89%87%20%E6%AE%B5.mp4?s=%C3%A9"),
        ("https://x.cdn.example.com/u@h:1/?x=//evil.com", "x.cdn.example.com", "/u@h:1/?x=//evil.com"),
        ("http://x.cdn.example.com/v.mp4", "x.cdn.example.com", "/v.mp4"),
        ("http://x.cdn.example.com:80/v.mp4", "x.cdn.example.com", "/v.mp4"),
    ],
)
def test_a_listed_address_is_let_out_over_tls(url: str, host: str, target: str) -> None:
    """
    A listed address is read as its host at port 443 over TLS, its target escaped and no more changed.
    """
    read = gate().admit(url)
    assert (read.origin, read.target) == (("https", host, 443), target)


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_a_name_that_leads_elsewhere_is_refused(address: str) -> None:
    """
    A listed name is refused if any one of its addresses is not public.
    """
    for answer in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(OutboundRefused):
            await gate(resolve=Names(api_example_com=answer)).addresses("api.example.com", 443)


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2001:4860:4860::8888"]
)
async def test_a_public_address_is_dialled(address: str) -> None:
    """
    A listed name that leads to a public address, also one inside IPv6, may be dialled.
    """
    assert await gate(resolve=Names(api_example_com=[address])).addresses("api.example.com", 443)


@given(st.integers(0, 2**32 - 1).map(ip_address) | st.integers(0, 2**128 - 1).map(ip_address))
def test_what_counts_as_public_is_global_to_the_standard_library_too(address: object) -> None:
    """
    No address is public to us that `ipaddress` calls not global.
    """
    assert not is_public(address) or address.is_global


async def test_invented_addresses_are_accepted_only_when_set() -> None:
    """
    The range of invented addresses is let pass with `fake_ip`, and otherwise refused with that hint.
    """
    names = Names(api_example_com=["198.18.0.7"])
    assert await gate(resolve=names, fake_ip=True).addresses("api.example.com", 443) == ["198.18.0.7"]
    with pytest.raises(OutboundRefused) as refused:
        await gate(resolve=names).addresses("api.example.com", 443)
    assert "fake_ip" in refused.value.hint


async def test_a_name_without_an_answer_was_surely_not_sent_to() -> None:
    """
    A name that leads nowhere is a transport error that says that nothing was sent.
    """
    for names in (Names(), Names(api_example_com=[])):
        with pytest.raises(TransportError) as failed:
            await gate(resolve=names).addresses("api.example.com", 443)
        assert failed.value.maybe_sent is False


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000/v1", "http://localhost:8000", "http://[::1]:8000"])
def test_a_loopback_base_url_opens_exactly_itself(base: str) -> None:
    """
    A base URL on loopback lets out its own scheme, host and port, and no neighbour.
    """
    opened = Gate(base_url=base)
    host = base.removeprefix("http://").partition(":8000")[0]
    assert opened.admit(f"http://{host}:8000/x").direct
    for url in (f"http://{host}:8001/x", f"https://{host}:8000/x", f"http://{host}/x", "http://127.0.0.2:8000/x"):
        with pytest.raises(OutboundRefused):
            opened.admit(url)


async def test_localhost_must_lead_to_loopback() -> None:
    """
    `localhost` that resolves to a public address too is refused.
    """
    opened = Gate(base_url="http://localhost:8000", resolve=Names(localhost=["127.0.0.1", PUBLIC]))
    with pytest.raises(OutboundRefused):
        await opened.addresses("localhost", 8000)


def test_the_relays_own_port_is_never_reached() -> None:
    """
    A base URL at the port of the relay itself is refused.
    """
    with pytest.raises(OutboundRefused, match="own"):
        Gate(base_url="http://127.0.0.1:8000", own_ports=lambda: (7999, 8000)).admit("http://127.0.0.1:8000/x")


@pytest.mark.parametrize(
    "base",
    ["http://api.example.com/", "http://8.8.8.8/", "https://10.0.0.1/", "http://192.168.1.5:8000", "ftp://x/",
     "nonsense", "https://u:p@api.example.com/", "https://169.254.169.254/", "http://0.0.0.0:8000"],
)  # fmt: skip
def test_a_base_url_that_would_leak_or_wander_is_a_configuration_error(base: str) -> None:
    """
    Plain HTTP or private addresses, passwords and other schemes are no base URL.
    """
    with pytest.raises(ConfigError):
        Gate(base_url=base)


async def test_a_private_base_url_works_where_it_is_allowed_by_name() -> None:
    """
    With `private_network` the private base URL is let out, and its neighbours are not.
    """
    opened = Gate(base_url="http://192.168.1.5:8000", private_network=True)
    assert opened.admit("http://192.168.1.5:8000/v1/videos").direct
    assert await opened.addresses("192.168.1.5", 8000) == ["192.168.1.5"]
    with pytest.raises(OutboundRefused):
        opened.admit("http://192.168.1.6:8000/")


@pytest.mark.parametrize("answer", ["127.0.0.1", PUBLIC, "169.254.169.254", "224.0.0.1", "::1"])
async def test_plain_http_into_the_private_network_stays_there(answer: str) -> None:
    """
    A private name that leads to loopback, link-local, multicast or public addresses is refused.
    """
    opened = Gate(base_url="http://gpu.lan:8000", private_network=True, resolve=Names(gpu_lan=[answer]))
    with pytest.raises(OutboundRefused):
        await opened.addresses("gpu.lan", 8000)


def test_a_public_base_url_may_use_a_port_of_its_own() -> None:
    """
    The base URL's port is open at its host alone, and no other port is.
    """
    opened = Gate(["*.cdn.example.com"], base_url="https://gw.example.org:8443/v1")
    assert opened.admit("https://gw.example.org:8443/v1/videos").origin == ("https", "gw.example.org", 8443)
    with pytest.raises(OutboundRefused):
        opened.admit("https://gw.example.org/v1/videos")
    with pytest.raises(OutboundRefused):
        opened.admit("https://x.cdn.example.com:8443/")


@pytest.mark.parametrize(
    "host", ["*", "*.", "*.com", "*.1.2.3.4", "a*.example.com", "https://x", "x/y", "x:443", "", "é.com"]
)
def test_a_list_entry_that_is_no_host_is_a_configuration_error(host: str) -> None:
    """
    An entry that is too wide, an address, or no host name is refused when it is read.
    """
    with pytest.raises(ConfigError):
        Gate([host])
