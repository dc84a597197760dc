"""
The process's life in parts: which port, whose lock, what a leftover says, when nobody is there, what is logged.
"""

import asyncio
import json
import logging
import os
import socket
from pathlib import Path

import pytest

from vidrelay.client.beacon import Beacon, write_beacon
from vidrelay.clock import SystemClock
from vidrelay.core.errors import RelayUnavailable
from vidrelay.daemon.idle import Activity
from vidrelay.daemon.leftover import take_lock
from vidrelay.daemon.logs import clean, log_to
from vidrelay.daemon.ports import TRIES, candidates, ephemeral_range, open_first, try_port
from vidrelay.daemon.state import Kept, StateLock, clear_drafts, prepare, read_kept, write_kept
from vidrelay.testing.clock import FakeClock, settle

TOKEN = "vrl_" + "a" * 43


def beacon(port: int = 61500, *, idle_exit: bool = False) -> Beacon:
    return Beacon(
        port=port,
        token=TOKEN,
        pid=1,
        version="0",
        instance="one",
        started_at="2026-11-30T12:00:00.000Z",
        idle_exit=idle_exit,
    )


# Ports


def test_linux_ports_are_above_the_ephemeral_range() -> None:
    """
    With Linux's usual range the ten candidates begin right above it.
    """
    assert candidates((32768, 60999), lambda _: 0) == list(range(61000, 61010))


def test_the_last_start_still_leaves_ten_ports() -> None:
    """
    The highest starting port is the one that leaves ten up to 65535.
    """
    assert candidates((32768, 60999), lambda count: count - 1) == list(range(65526, 65536))


def test_ports_count_up_past_an_ephemeral_range_in_the_middle() -> None:
    """
    Candidates skip the ephemeral range where it lies between them.
    """
    found = candidates((49160, 60000), lambda _: 0)
    assert found == [*range(49152, 49160), 60001, 60002]


def test_where_too_few_ports_are_left_any_from_49152_will_do() -> None:
    """
    A range that leaves too few ports above it is not avoided.
    """
    assert candidates((49152, 65535), lambda _: 0)[0] == 49152
    assert candidates((32768, 64600), lambda _: 0)[0] == 49152
    assert candidates((32768, 64535), lambda _: 0)[0] == 64536


def test_the_ephemeral_range_is_the_systems_own(tmp_path: Path) -> None:
    """
    The system's file is read, and without it or its sense the standard range is taken.
    """
    source = tmp_path / "range"
    source.write_text("1024\t2048\n")
    assert ephemeral_range(source) == (1024, 2048)
    source.write_text("nonsense")
    assert ephemeral_range(source) == (49152, 65535)
    assert ephemeral_range(tmp_path / "none") == (49152, 65535)


def free_ports() -> list[int]:
    """
    Ten candidates that nobody holds: other tests take ports of the same range at the same time.
    """
    for shift in range(0, 4000, TRIES):
        start = os.getpid() * 100 + shift
        ports = candidates(ephemeral_range(), lambda count, start=start: start % count)
        holders = [try_port(port) for port in ports]
        for holder in holders:
            if holder is not None:
                holder.close()
        if None not in holders:
            return ports
    raise AssertionError("no ten ports are free")


@pytest.mark.parametrize("taken", [0, 1, 9])
def test_the_first_free_port_is_taken(taken: int) -> None:
    """
    The listener opens on loopback at the first candidate that nobody holds.
    """
    holders = []
    ports = free_ports()
    try:
        for port in ports[:taken]:
            holder = try_port(port)
            assert holder is not None
            holders.append(holder)
        with open_first(ports) as listener:
            assert listener.getsockname() == ("127.0.0.1", ports[taken])
    finally:
        for holder in holders:
            holder.close()


def test_ten_taken_ports_are_told() -> None:
    """
    When all candidates are taken the relay is unavailable, and says so.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(RelayUnavailable, match="is free"):
            open_first([port] * TRIES)


def test_a_port_with_a_listener_cannot_be_shared() -> None:
    """
    A port on which somebody listens is not opened, even where its holder would share it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert try_port(holder.getsockname()[1]) is None


# The state directory


def test_the_state_directory_is_private_even_if_it_was_not(tmp_path: Path) -> None:
    """
    The directory is made with mode 0700, and one that was wider is narrowed.
    """
    place = tmp_path / "new" / "state"
    prepare(place)
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o755)
    prepare(place)
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_file_in_its_place_is_told(tmp_path: Path) -> None:
    """
    A file where the state directory should be makes the relay unavailable.
    """
    place = tmp_path / "state"
    place.write_text("")
    with pytest.raises(RelayUnavailable, match="cannot be used"):
        prepare(place)


def test_the_lock_is_one_relays(tmp_path: Path) -> None:
    """
    A lock has one holder at a time, and its private file stays after the release.
    """
    first, second = StateLock(tmp_path), StateLock(tmp_path)
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()
    assert (tmp_path / "relay.lock").exists()
    assert (tmp_path / "relay.lock").stat().st_mode & 0o777 == 0o600


def test_a_planted_link_is_no_lock(tmp_path: Path) -> None:
    """
    A link in the lock's place is refused, and what it points to stays as it was.
    """
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "relay.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayUnavailable, match="cannot be opened"):
        StateLock(tmp_path).take()
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_token_and_port_are_kept(tmp_path: Path) -> None:
    """
    Token and port that were written are read again, from a private file.
    """
    assert read_kept(tmp_path) is None
    write_kept(tmp_path, Kept(token=TOKEN, port=61234))
    assert read_kept(tmp_path) == Kept(token=TOKEN, port=61234)
    assert (tmp_path / "keep.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"token": "x", "port": 1}', '{"token": "vrl_short", "port": 1}', "\xff"]
)
def test_a_keep_file_that_no_relay_wrote_is_passed_over(tmp_path: Path, text: str) -> None:
    """
    A keep file that is garbled or holds no proper token and port counts as none.
    """
    (tmp_path / "keep.json").write_text(text, encoding="latin-1")
    assert read_kept(tmp_path) is None


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
def test_a_keep_file_that_others_may_read_or_write_is_passed_over(tmp_path: Path, mode: int) -> None:
    """
    Who could read it knows the token, and who could write it chose it.
    """
    write_kept(tmp_path, Kept(token=TOKEN, port=61000))
    assert read_kept(tmp_path) is not None
    (tmp_path / "keep.json").chmod(mode)
    assert read_kept(tmp_path) is None


def test_drafts_of_a_killed_relay_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    """
    Unfinished drafts of our own files go, and files of any other name stay.
    """
    drafts = [tmp_path / f".{name}.json.0123456789abcdef" for name in ("relay", "keep")]
    others = [tmp_path / name for name in ("keep.json", ".relay.json.bak", ".other.json.0123456789abcdef", "relay.db")]
    for path in (*drafts, *others):
        path.write_text(TOKEN)
    clear_drafts(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(others)


# A relay that is there already


async def test_a_second_relay_is_told_where_the_first_listens(tmp_path: Path) -> None:
    """
    A start while the lock is held fails with the address of the relay that runs.
    """
    write_beacon(tmp_path, beacon())
    with StateLock(tmp_path) as holder:
        assert holder.take()
        with pytest.raises(RelayUnavailable, match=r"running already at http://127\.0\.0\.1:61500"):
            await take_lock(StateLock(tmp_path), tmp_path, replace=False, take_over=True, clock=SystemClock())


async def test_a_lock_without_a_word_is_waited_for_ten_seconds(tmp_path: Path) -> None:
    """
    Where the holder tells no address, the start gives up after ten seconds and says why.
    """
    clock = FakeClock()
    with StateLock(tmp_path) as holder:
        assert holder.take()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(
                _outcome(take_lock(StateLock(tmp_path), tmp_path, replace=False, take_over=True, clock=clock))
            )
            await clock.advance(9.5)
            assert not asking.done()
            await clock.advance(1)
    assert "does not say where it listens" in asking.result()


async def test_a_lock_that_is_let_go_meanwhile_is_taken(tmp_path: Path) -> None:
    """
    A start that waits for the lock takes it once it is free.
    """
    clock = FakeClock()
    holder, waiter = StateLock(tmp_path), StateLock(tmp_path)
    assert holder.take()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(take_lock(waiter, tmp_path, replace=False, take_over=True, clock=clock))
        await settle()
        holder.release()
        await clock.advance(1)
    assert asking.done()
    waiter.release()


async def test_a_recorder_on_the_port_gets_no_token_even_from_replace(tmp_path: Path) -> None:
    """
    A listener that cannot prove itself hears proofs only, and the start gives up.
    """
    heard: list[bytes] = []

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"mac": "abc"}')
        await writer.drain()
        writer.close()

    clock = FakeClock()
    server = await asyncio.start_server(record, "127.0.0.1", 0)
    async with server:
        write_beacon(tmp_path, beacon(server.sockets[0].getsockname()[1]))
        with StateLock(tmp_path) as holder:
            assert holder.take()
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(
                    _outcome(take_lock(StateLock(tmp_path), tmp_path, replace=True, take_over=True, clock=clock))
                )
                while not asking.done():
                    await asyncio.sleep(0.01)
                    await clock.advance(1)
    assert "did not leave within 10 seconds" in asking.result()
    assert heard
    assert all(said.startswith(b"POST /proof ") and TOKEN.encode() not in said for said in heard)


async def _outcome(work) -> str:
    try:
        await work
    except RelayUnavailable as error:
        return error.message
    return ""


# Idle


async def call(app: Activity) -> None:
    await app({"type": "http"}, None, None)


async def test_the_relay_is_idle_once_nothing_was_asked_for_so_long() -> None:
    """
    Open streams and live tasks count as use, and idleness is counted from the last of it.
    """
    clock, busy, streams = FakeClock(), [False], asyncio.Event()

    async def app(scope, receive, send) -> None:
        await streams.wait()

    activity = Activity(app, clock)
    async with asyncio.TaskGroup() as group:
        idling = group.create_task(activity.idle(60, busy=lambda: busy[0]))
        stream = group.create_task(call(activity))
        await clock.advance(300)
        assert not idling.done(), "an open stream is use"
        streams.set()
        await stream
        await clock.advance(50)
        busy[0] = True
        await clock.advance(100)
        assert not idling.done(), "a live task is use"
        busy[0] = False
        await clock.advance(50)
        assert not idling.done()
        await clock.advance(15)
        assert idling.done()


# Logs


@pytest.mark.parametrize("secret", ["vrl_abcdefgh", "Bearer sk-1234567890", "https://cdn.example/a?sig=s3cr3t"])
def test_no_credential_reaches_the_log(secret: str) -> None:
    """
    Tokens, keys and signed queries are taken out of a line before it is written.
    """
    line = clean(f"poll.failed detail={secret}")
    assert secret not in line
    assert "s3cr3t" not in line


def test_what_could_steer_a_terminal_is_shown_as_codes() -> None:
    """
    Control and direction characters become codes, and a line break a space.
    """
    assert clean("a\x1b[31mb\u202ec\rd\ne") == "a\\x1b[31mb\\x202ec\\x0dd e"


@pytest.mark.parametrize("letter", [*map(chr, range(0x20)), *"\x7f\x9b\xad\u061c\u180e\u2067\ud800\ufeff\U000e0041"])
def test_no_unseen_character_reaches_the_log(letter: str) -> None:
    """
    Neither a control, nor a mark that turns the direction, nor half a pair, which no file in UTF-8 can hold.
    """
    assert clean(f"a{letter}b").encode().isascii()
    assert letter not in clean(f"a{letter}b")


def test_the_log_is_private_and_has_one_line_an_entry(tmp_path: Path) -> None:
    """
    An exception is one line with its kind and place and without its message, in a private file.
    """
    logger = logging.getLogger("vidrelay")
    before = logger.handlers[:]
    try:
        log_to(tmp_path)
        try:
            raise ValueError("prompt text")  # noqa: TRY301
        except ValueError:
            logging.getLogger("vidrelay.test").exception("step.failed task=%s", "t1")
    finally:
        for handler in logger.handlers[len(before) :]:
            handler.close()
            logger.removeHandler(handler)
        logger.propagate = True
    log = tmp_path / "logs" / "relay.log"
    assert log.stat().st_mode & 0o777 == 0o600
    lines = log.read_text().splitlines()
    assert len(lines) == 1
    assert "step.failed task=t1" in lines[0]
    assert "error=ValueError at test_daemon.py" in lines[0]
    assert "prompt text" not in lines[0]


def test_the_beacon_file_says_what_the_contract_names(tmp_path: Path) -> None:
    """
    relay.json has the contract's fields, and `idleExit` only for a relay that leaves.
    """
    write_beacon(tmp_path, beacon(idle_exit=True))
    told = json.loads((tmp_path / "relay.json").read_text())
    assert set(told) == {"port", "token", "pid", "version", "instance", "startedAt", "idleExit"}
    write_beacon(tmp_path, beacon())
    assert set(json.loads((tmp_path / "relay.json").read_text())) == set(told) - {"idleExit"}
