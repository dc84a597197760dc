"""
The command line as people run it: real processes, a real relay, the preview provider or the pretend one.
"""

import asyncio
import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from vidrelay.client.beacon import Beacon, read_beacon, write_beacon

pytestmark = pytest.mark.process

PACE = '[poll]\nfirst = "0.2s"\ncap = "0.4s"\nnot_found_grace = "1s"\n'


class Shell:
    """
    Runs commands on a state directory of their own, and ends every relay that they have started.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "vidrelay.toml"
        self.configure("")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("VIDRELAY_")}
        self.env |= {"VIDRELAY_CONFIG": str(self.config), "VIDRELAY_STATE_DIR": str(self.state), "PYTHONUTF8": "1"}
        self.children: list[subprocess.Popen[str]] = []

    def configure(self, text: str) -> None:
        self.config.write_text(PACE + text)
        self.config.chmod(0o600)

    def run(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vidrelay", *arguments]
        return subprocess.run(
            command,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=self.folder,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "vidrelay", *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        self.children.append(child)
        return child

    def serve(self, *arguments: str) -> subprocess.Popen[str]:
        child = self.start("serve", *arguments)
        assert "listening on" in first_line(child)
        return child

    def close(self) -> None:
        beacon = read_beacon(self.state)
        if beacon is not None and beacon.pid not in {child.pid for child in self.children}:
            with_patience(lambda: not alive(beacon.pid) or os.kill(beacon.pid, signal.SIGTERM))
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()


def first_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A relay whose parent left before it is collected by init, which may take seconds over it.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def with_patience(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    found.close()


@pytest.fixture
def provider(shell: Shell) -> Iterator[str]:
    """
    The pretend provider, started with `vidrelay simulate`; its base address.
    """
    child = shell.start("simulate", "--port", "0", "--queue-seconds", "0", "--run-seconds", "0.6")
    url = first_line(child).split()[-1]
    shell.configure(f'[accounts.main]\nprovider = "openai"\nbase_url = "{url}/v1"\nwindow = 2\n')
    yield url
    child.send_signal(signal.SIGTERM)


# The main path


def test_one_command_makes_a_clip_with_no_configuration_at_all(shell: Shell) -> None:
    """
    `generate` starts a relay, makes and saves a clip; asked again, the same file comes from the cache.
    """
    made = shell.run("generate", "A paper boat", "--duration", "1", "-o", "boat.mp4")
    assert made.returncode == 0, made.stderr
    assert made.stdout == "boat.mp4\n"
    assert (shell.folder / "boat.mp4").read_bytes()[4:8] == b"ftyp"
    assert "accepted for preview" in made.stderr
    again = shell.run("generate", "A paper boat", "--duration", "1", "--json")
    told = json.loads(again.stdout)
    assert again.returncode == 0
    assert told["fromCache"]
    assert hashlib.sha256((shell.folder / "boat.mp4").read_bytes()).hexdigest() == told["result"]["files"][0]["sha256"]


def test_without_a_place_to_save_the_cached_path_is_told(shell: Shell, provider: str) -> None:
    """
    Without `-o` stdout has the path of the result inside the relay's cache.
    """
    made = shell.run("generate", "A fox")
    assert made.returncode == 0, made.stderr
    assert Path(made.stdout.strip()).is_file()
    assert str(shell.state / "cache") in made.stdout


def test_a_directory_gets_a_file_named_by_the_prompt(shell: Shell, provider: str) -> None:
    """
    `-o` with a directory saves a file whose name is made of the prompt and the task's id.
    """
    made = shell.run("generate", "A Fox!", "-o", "out/")
    assert re.fullmatch(r"out/a-fox-[0-9a-f]{8}\.mp4\n", made.stdout), made.stderr


def test_no_wait_prints_the_id_and_the_task_can_be_collected(shell: Shell, provider: str) -> None:
    """
    `--no-wait` prints the id alone, by which watch, result, show and tasks find the task later.
    """
    made = shell.run("generate", "A fox", "--no-wait")
    assert made.returncode == 0, made.stderr
    task_id = made.stdout.strip()
    watched = shell.run("watch", task_id)
    assert watched.returncode == 0
    assert watched.stdout == ""
    saved = shell.run("result", task_id, "-o", "fox.mp4", "--json")
    assert json.loads(saved.stdout) == {"taskId": task_id, "paths": ["fox.mp4"]}
    shown = shell.run("show", task_id, "--json")
    assert json.loads(shown.stdout)["state"] == "done"
    listed = shell.run("tasks", "--json")
    assert [task["taskId"] for task in json.loads(listed.stdout)["tasks"]] == [task_id]
    assert task_id in shell.run("tasks").stderr


def test_what_is_set_reaches_the_provider(shell: Shell, provider: str) -> None:
    """
    `--set` and `--seed` stand in the request that the relay has taken.
    """
    made = shell.run("generate", "A fox", "--set", "mood=calm", "--seed", "7", "--no-wait", "--json")
    request = json.loads(made.stdout)["request"]
    assert request["extra"] == {"mood": "calm"}
    assert request["seed"] == 7


def test_json_leaves_stdout_to_machines(shell: Shell, provider: str) -> None:
    """
    With `--json` stdout is one JSON value and what people read goes to stderr.
    """
    made = shell.run("generate", "A fox", "--json", "-o", "fox.mp4")
    assert json.loads(made.stdout)["state"] == "done"
    assert len(made.stdout.splitlines()) == 1
    assert "fox.mp4" in made.stderr
    for command in ("stats", "accounts", "doctor"):
        found = shell.run(command, "--json")
        assert found.returncode == 0
        json.loads(found.stdout)


# Exit statuses


def test_a_failed_task_exits_1(shell: Shell, provider: str) -> None:
    """
    A task that the provider fails makes `generate` exit with 1 and still print the task.
    """

    httpx2.post(f"{provider}/_control", json={"fail_share": 1.0}, trust_env=False, verify=False).raise_for_status()
    made = shell.run("generate", "A fox", "--json")
    assert made.returncode == 1
    assert json.loads(made.stdout)["state"] == "failed"


def test_an_uncertain_task_exits_4_and_says_what_can_be_done(shell: Shell, provider: str) -> None:
    """
    An uncertain task exits with 4, names the ways out, and one of them ends it.
    """

    told = {"faults": ["create-drop-after", "list-error=500:always"]}
    httpx2.post(f"{provider}/_control", json=told, trust_env=False, verify=False).raise_for_status()
    made = shell.run("generate", "A fox", "--json")
    assert made.returncode == 4, made.stderr
    task_id = json.loads(made.stdout)["taskId"]
    assert f"vidrelay resolve {task_id} --abandon" in made.stderr
    twin = shell.run("generate", "A fox", "--no-wait")
    assert (twin.returncode, twin.stdout.strip()) == (4, task_id)
    assert "joined: it is unclear" in twin.stderr
    assert shell.run("resolve", task_id, "--abandon").returncode == 0
    assert shell.run("show", task_id).returncode == 1


def test_a_cancelled_task_exits_1_and_cancel_says_what_came_of_it(shell: Shell, provider: str) -> None:
    """
    `cancel` prints the cancelled task and exits with 0; watching that task exits with 1.
    """

    httpx2.post(f"{provider}/_control", json={"run_seconds": 60}, trust_env=False, verify=False).raise_for_status()
    task_id = shell.run("generate", "A fox", "--no-wait").stdout.strip()
    cancelled = shell.run("cancel", task_id, "--json")
    assert cancelled.returncode == 0
    assert json.loads(cancelled.stdout)["state"] == "cancelled"
    assert shell.run("watch", task_id).returncode == 1


def test_what_is_in_line_is_cancelled_before_a_place_is_freed(shell: Shell) -> None:
    """
    Of five tasks that are cancelled at once, at a provider that stops jobs, none is sent after that; one that is not
    there keeps no other going, and makes the exit status 1.
    """
    child = shell.start("simulate", "--dialect", "replicate", "--port", "0", "--run-seconds", "60")
    url = first_line(child).split()[-1]
    shell.configure(f'[accounts.main]\nprovider = "replicate"\nbase_url = "{url}"\nwindow = 1\n')
    shell.env["REPLICATE_API_TOKEN"] = "r8-test"
    made = [shell.run("generate", f"Fox {number}", "--model", "lab/film", "--no-wait") for number in range(5)]
    ids = [one.stdout.strip() for one in made]
    with_patience(lambda: json.loads(shell.run("show", ids[0], "--json").stdout)["state"] == "running")
    cancelled = shell.run("cancel", ids[0], "nobody", *ids[1:], ids[0], "--json")
    told = [json.loads(line) for line in cancelled.stdout.splitlines()]
    assert [task["taskId"] for task in told] == ids[::-1]
    assert {task["state"] for task in told} == {"cancelled"}
    assert cancelled.returncode == 1
    assert "vidrelay tasks" in cancelled.stderr
    ledger = httpx2.get(f"{url}/_ledger", trust_env=False, verify=False).json()
    assert ledger["creates"]["received"] == 1
    child.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate",),
        ("generate", "p", "--unheard"),
        ("generate", "p", "--duration", "long"),
        ("generate", "p", "--ref", "none.png"),
        ("generate", "p", "--set", "x"),
        ("resolve", "t"),
        ("resolve", "t", "--retry", "--abandon"),
        ("batch", "none.csv"),
        ("serve", "--host", "0.0.0.0"),
        ("serve", "--bind", "0.0.0.0"),
        ("serve", "--port", "0"),
        ("serve", "--idle-exit", "soon"),
        ("nothing",),
        ("tasks", "--state", "melted"),
        ("--config", "none.toml", "serve"),
    ],
)
def test_wrong_use_exits_2_and_starts_nothing(shell: Shell, arguments: tuple[str, ...]) -> None:
    """
    Wrong arguments exit with 2 and a message on stderr, before any relay or database is made.
    """
    found = shell.run(*arguments)
    assert found.returncode == 2, found.stderr
    assert found.stdout == ""
    assert found.stderr.strip()
    assert not (shell.state / "relay.db").exists()


@pytest.mark.parametrize("command", [("serve",), ("generate", "p")])
def test_a_wrong_configuration_exits_2_with_its_line(shell: Shell, command: tuple[str, ...]) -> None:
    """
    A wrong setting exits with 2 and is told by its file, line and name, and what is allowed.
    """
    shell.configure("[relay]\nhost = '0.0.0.0'\n")
    found = shell.run(*command)
    assert found.returncode == 2
    assert "vidrelay.toml:6: relay.host" in found.stderr
    assert "127.0.0.1 only" in found.stderr


def test_a_request_for_no_account_is_refused_where_there_are_two(shell: Shell) -> None:
    """
    With two accounts and neither chosen, `generate` exits with 2 and asks for one.
    """
    account = 'provider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    shell.configure(f"[accounts.a]\n{account}[accounts.b]\n{account}")
    found = shell.run("generate", "A fox")
    assert found.returncode == 2, found.stderr
    assert "account" in found.stderr


def test_an_unknown_task_exits_1(shell: Shell) -> None:
    """
    Showing a task that is not there exits with 1 and says how the tasks are listed.
    """
    found = shell.run("show", "nobody")
    assert found.returncode == 1
    assert "vidrelay tasks" in found.stderr


def test_a_damaged_database_exits_3_and_stays_as_it_is(shell: Shell) -> None:
    """
    A file that is no database stops `serve` with 3, and not a byte of it is changed.
    """
    shell.state.mkdir(mode=0o700)
    (shell.state / "relay.db").write_bytes(b"not a database" * 1000)
    found = shell.run("serve")
    assert found.returncode == 3
    assert (shell.state / "relay.db").read_bytes() == b"not a database" * 1000


def test_a_taken_port_exits_3(shell: Shell, provider: str) -> None:
    """
    A port in use stops `serve` with 3, names the port, and no relay.json is left.
    """
    port = provider.rsplit(":", 1)[1]
    found = shell.run("serve", "--port", port)
    assert found.returncode == 3
    assert f"Port {port} is taken" in found.stderr
    assert not (shell.state / "relay.json").exists()


# Interruption


def on_terminal(shell: Shell, *arguments: str, until: bytes, then: bytes) -> tuple[int, str]:
    """
    Run a command on a terminal of its own; once `until` is seen, type `then`. Its exit status and all it wrote.
    """
    child, terminal = pty.fork()
    if child == 0:
        # As a shell does for what it runs on a terminal: whoever runs the tests may have Ctrl-C ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.chdir(shell.folder)
        os.execve(sys.executable, [sys.executable, "-m", "vidrelay", *arguments], shell.env | {"TERM": "xterm"})
    seen, typed, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        if not typed and until in seen:
            typed = True
            os.write(terminal, then)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), seen.decode(errors="replace")


def test_ctrl_c_leaves_the_task_running_and_says_how_to_come_back(shell: Shell, provider: str) -> None:
    """
    Ctrl-C exits with 130 and says how to watch the task, which the relay finishes.
    """
    # Long enough for the key to be pressed on a slow machine, and ended from outside afterwards.
    httpx2.post(f"{provider}/_control", json={"run_seconds": 600}, trust_env=False, verify=False).raise_for_status()
    status, seen = on_terminal(shell, "generate", "A fox", until="━".encode(), then=b"\x03")
    assert status == 130, seen
    assert "The task goes on." in seen
    task_id = re.search(r"vidrelay watch (\S+)", seen)[1]
    httpx2.post(f"{provider}/_control", json={"finish": True}, trust_env=False, verify=False).raise_for_status()
    with_patience(lambda: json.loads(shell.run("show", task_id, "--json").stdout)["state"] == "done")


def test_a_terminal_shows_stage_bar_and_end(shell: Shell, provider: str) -> None:
    """
    On a terminal the stage, a bar and the time taken are drawn, and a prompt's escapes do not get through.
    """
    status, seen = on_terminal(shell, "generate", "A fox \x1b]0;owned\x07", until=b"\x00", then=b"")
    assert status == 0, seen
    assert "━" in seen
    assert "generating" in seen or "provider's line" in seen
    assert re.search(r"done in [0-9.]+ s", seen)
    assert "\x1b]0;owned" not in seen


def test_sigterm_drains_and_a_live_task_goes_on_in_the_next_life(shell: Shell, provider: str) -> None:
    """
    On SIGTERM the relay leaves with 0, and the next relay takes its live task to the end.
    """
    relay = shell.serve()
    task_id = shell.run("generate", "A fox", "--no-wait").stdout.strip()
    relay.send_signal(signal.SIGTERM)
    assert relay.wait(20) == 0
    assert not (shell.state / "relay.json").exists()
    assert shell.run("watch", task_id).returncode == 0


def test_the_first_signal_waits_for_a_create_call_and_the_second_does_not(shell: Shell, provider: str) -> None:
    """
    A second signal cuts off the create call that the first one waits for: its task is uncertain.
    """

    told = {"faults": ["create-slow=30", "list-error=500:always"]}
    httpx2.post(f"{provider}/_control", json=told, trust_env=False, verify=False).raise_for_status()
    relay = shell.serve()
    task_id = shell.run("generate", "A fox", "--no-wait").stdout.strip()
    with_patience(lambda: json.loads(shell.run("show", task_id, "--json").stdout)["state"] == "submitting")
    relay.send_signal(signal.SIGTERM)
    with_patience(lambda: not (shell.state / "relay.json").exists())
    with pytest.raises(subprocess.TimeoutExpired):
        relay.wait(1)
    relay.send_signal(signal.SIGTERM)
    assert relay.wait(10) == 0
    assert shell.run("show", task_id).returncode == 4


def test_a_command_survives_the_death_of_its_relay(shell: Shell, provider: str) -> None:
    """
    A `generate` whose relay is killed goes on with a new relay and saves the clip.
    """

    httpx2.post(f"{provider}/_control", json={"run_seconds": 8}, trust_env=False, verify=False).raise_for_status()
    child = shell.start("generate", "A fox", "-o", "fox.mp4")
    with_patience(lambda: read_beacon(shell.state) is not None)
    beacon = read_beacon(shell.state)
    with_patience(lambda: '"running"' in shell.run("tasks", "--json").stdout)
    os.kill(beacon.pid, signal.SIGKILL)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert out == "fox.mp4\n"


# Batches


def test_a_batch_is_made_once_however_often_it_is_run(shell: Shell, provider: str) -> None:
    """
    A second run of a table saves the same files again, and the provider gets each request once.
    """

    (shell.folder / "t.csv").write_text("prompt,seed,output\nA fox,1,fox.mp4\nA hen,2,\nA fox,1,\n")
    first = shell.run("batch", "t.csv", "-o", "out", "--json")
    assert first.returncode == 0, first.stderr
    rows = [json.loads(line) for line in first.stdout.splitlines()]
    assert [Path(row["paths"][0]).name for row in rows] == ["fox.mp4", "2-a-hen.mp4", "3-a-fox.mp4"]
    (shell.folder / "out" / "fox.mp4").unlink()
    second = shell.run("batch", "t.csv", "-o", "out")
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines() == ["out/fox.mp4", "out/2-a-hen.mp4", "out/3-a-fox.mp4"]
    assert httpx2.get(f"{provider}/_ledger", trust_env=False, verify=False).json()["creates"]["received"] == 2


def test_no_row_of_a_batch_writes_over_anothers_file(shell: Shell, provider: str) -> None:
    """
    A row whose own name another row claims is told so, and where its clip is; the named file holds its row's clip.
    """
    (shell.folder / "t.csv").write_text("prompt,output\nA fox,\nA hen,1-A-Fox.mp4\n")
    found = shell.run("batch", "t.csv", "-o", "out")
    assert found.returncode == 1
    assert found.stdout.splitlines() == ["out/1-A-Fox.mp4"]
    assert "is the file of row 2" in found.stderr
    assert [file.name for file in (shell.folder / "out").iterdir()] == ["1-A-Fox.mp4"]


def test_a_batch_ends_with_its_worst_row(shell: Shell, provider: str) -> None:
    """
    One failed row makes the batch exit with 1, the others are saved, and `--retry-failed` mends it.
    """

    httpx2.post(
        f"{provider}/_control", json={"faults": ["create-moderation"]}, trust_env=False, verify=False
    ).raise_for_status()
    (shell.folder / "t.jsonl").write_text('{"prompt": "A fox"}\n{"prompt": "A hen"}\n')
    found = shell.run("batch", "t.jsonl")
    assert found.returncode == 1, found.stderr
    assert len(found.stdout.splitlines()) == 1
    again = shell.run("batch", "t.jsonl", "--retry-failed")
    assert again.returncode == 0, again.stderr
    assert len(again.stdout.splitlines()) == 2


# Starts


def test_of_eight_starts_at_once_one_wins_and_the_others_say_where_it_is(shell: Shell) -> None:
    """
    Of many starts at once one serves, and the rest exit with 3 and its address.
    """
    children = [shell.start("serve") for _ in range(8)]
    with_patience(lambda: sum(child.poll() is None for child in children) == 1, seconds=60)
    winner = next(child for child in children if child.poll() is None)
    url = first_line(winner).split()[-1]
    for child in children:
        if child is not winner:
            assert child.returncode == 3
            assert url in child.stderr.read()
    winner.send_signal(signal.SIGINT)
    assert winner.wait(20) == 0


def test_of_five_commands_at_once_all_use_one_relay(shell: Shell, provider: str) -> None:
    """
    The same request from five commands at once becomes one task of one relay, and all five succeed.
    """
    children = [shell.start("generate", "A fox", "--json") for _ in range(5)]
    told = [json.loads(child.communicate(timeout=60)[0]) for child in children]
    assert len({task["taskId"] for task in told}) == 1
    assert [child.returncode for child in children] == [0] * 5


def test_replace_takes_over_from_a_running_relay(shell: Shell) -> None:
    """
    `serve --replace` ends the relay that runs, with status 0, and stands in its place.
    """
    first = shell.serve()
    second = shell.serve("--replace")
    assert first.wait(20) == 0
    assert read_beacon(shell.state).pid == second.pid


def test_a_lasting_relay_takes_over_from_one_that_leaves_when_idle(shell: Shell) -> None:
    """
    A plain `serve` takes the place of a relay that was started to leave when idle.
    """
    first = shell.serve("--idle-exit", "60s")
    assert read_beacon(shell.state).idle_exit
    second = shell.serve()
    assert first.wait(20) == 0
    assert not read_beacon(shell.state).idle_exit
    second.send_signal(signal.SIGTERM)


def test_an_idle_relay_leaves_by_itself(shell: Shell) -> None:
    """
    A relay with `--idle-exit` and nothing to do exits with 0 and removes its relay.json.
    """
    relay = shell.serve("--idle-exit", "1s")
    assert relay.wait(20) == 0
    assert not (shell.state / "relay.json").exists()


def test_a_kept_token_and_port_stay(shell: Shell) -> None:
    """
    With `token = "keep"` a relay has the port and the token of the one before it.
    """
    shell.configure('[relay]\ntoken = "keep"\n')
    seen = set()
    for _ in range(2):
        relay = shell.serve()
        beacon = read_beacon(shell.state)
        seen.add((beacon.port, beacon.token))
        relay.send_signal(signal.SIGTERM)
        relay.wait(20)
    assert len(seen) == 1


def test_everything_in_the_state_directory_is_private_under_any_umask(shell: Shell, provider: str) -> None:
    """
    Even under a umask of 0 no file in the state directory can be read by others.
    """
    before = os.umask(0)
    try:
        made = shell.run("generate", "A fox")
    finally:
        os.umask(before)
    assert made.returncode == 0, made.stderr
    found = [path for path in shell.state.rglob("*") if path.lstat().st_mode & 0o077 and not path.is_symlink()]
    assert found == []


def test_the_token_and_the_prompt_are_in_no_log_and_no_argument(shell: Shell, provider: str) -> None:
    """
    Neither token nor prompt is written to the logs, and the token is in no argument of the relay.
    """
    assert shell.run("generate", "canary prompt").returncode == 0
    token = read_beacon(shell.state).token
    logs = b"".join(path.read_bytes() for path in (shell.state / "logs").iterdir())
    assert token.encode() not in logs
    assert b"canary" not in logs
    arguments = Path(f"/proc/{read_beacon(shell.state).pid}/cmdline").read_bytes()
    assert token.encode() not in arguments


async def test_a_stranger_on_the_old_port_gets_nothing_and_a_new_relay_is_started(shell: Shell) -> None:
    """
    What listens on a dead relay's port is sent a proof to solve, and neither token nor prompt.
    """
    heard = bytearray()

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(65536))
        writer.close()

    server = await asyncio.start_server(record, "127.0.0.1", 0)
    shell.state.mkdir(mode=0o700)
    token = "vrl_" + "c" * 43
    stale = Beacon(
        port=server.sockets[0].getsockname()[1],
        token=token,
        pid=os.getpid(),
        version="0",
        instance="old",
        started_at="2026-11-30T12:00:00.000Z",
    )
    write_beacon(shell.state, stale)
    async with server:
        found = await asyncio.to_thread(shell.run, "generate", "A canary", "--duration", "1", "--no-wait")
    assert found.returncode == 0, found.stderr
    assert heard.startswith(b"POST /proof")
    assert token.encode() not in heard
    assert b"canary" not in heard
    assert read_beacon(shell.state).instance != "old"


@pytest.mark.parametrize("hint", [b"", b"{}", b"\xff\x00", b"[" * 9000, b"x" * 100_000])
def test_a_garbled_relay_json_hinders_nobody(shell: Shell, hint: bytes) -> None:
    """
    Whatever bytes relay.json holds, `serve` starts and writes a proper one.
    """
    shell.state.mkdir(mode=0o700)
    (shell.state / "relay.json").write_bytes(hint)
    (shell.state / "relay.json").chmod(0o600)
    relay = shell.serve()
    assert read_beacon(shell.state) is not None
    relay.send_signal(signal.SIGTERM)
    assert relay.wait(20) == 0


# Doctor


def test_doctor_finds_nothing_wrong_without_a_relay(shell: Shell) -> None:
    """
    On a fresh machine doctor exits with 0, says that no relay runs, and leaves no state behind.
    """
    found = shell.run("doctor")
    assert found.returncode == 0, found.stderr
    assert "none is running" in found.stderr
    assert not shell.state.exists()


def test_doctor_says_what_to_do_about_a_missing_key_and_a_dead_host(shell: Shell) -> None:
    """
    A missing key exits with 2, an unreachable host with 3, and `--offline` asks no host.
    """
    account = 'provider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    shell.configure(f'[accounts.a]\n{account}key_env = "NO_SUCH_KEY"\n')
    found = shell.run("doctor", "--json")
    assert found.returncode == 2
    assert any("NO_SUCH_KEY" in one["detail"] for one in json.loads(found.stdout))
    shell.configure(f"[accounts.a]\n{account}")
    found = shell.run("doctor", "--json")
    assert found.returncode == 3
    assert any("cannot be reached" in one["detail"] for one in json.loads(found.stdout))
    assert shell.run("doctor", "--offline").returncode == 0


@pytest.mark.parametrize(
    ("access", "secret"),
    [
        ("KLING_ACCESS_KEY", "KLING_SECRET_KEY"),
        ("VOLC_ACCESSKEY", "VOLC_SECRETKEY"),
        ("TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY"),
    ],
)
def test_half_a_key_is_told_with_the_name_of_the_other_half(shell: Shell, access: str, secret: str) -> None:
    """
    Where it would have made an account by itself that is a note, and where the file names it an error; no value shows.
    """
    shell.env[access] = "half-canary"
    shell.configure("")
    found = shell.run("doctor", "--offline", "--json")
    assert found.returncode == 0
    notes = [one for one in json.loads(found.stdout) if one["subject"] == "environment"]
    assert [one["verdict"] for one in notes] == ["note"]
    assert notes[0]["detail"].startswith(f"{secret} is empty or not there, and {access} is set")
    shown = shell.run("accounts")
    assert f"{secret} is empty or not there" in shown.stderr
    shell.configure(f'[accounts.a]\nprovider = "kling"\nkey_env = "{access}+{secret}"\n')
    wrong = shell.run("doctor", "--offline", "--json")
    assert wrong.returncode == 2
    assert any(
        f"{secret} is empty or not there, and {access} is set" in one["detail"] for one in json.loads(wrong.stdout)
    )
    assert "half-canary" not in found.stdout + shown.stderr + wrong.stdout


def test_a_short_secret_is_told_by_doctor_and_nowhere_else(shell: Shell) -> None:
    """
    It signs as it is, and nobody is warned at each call.
    """
    url = first_line(shell.start("simulate", "--dialect", "kling", "--key", "access:short-canary")).split()[-1]
    shell.env |= {"KLING_ACCESS_KEY": "access", "KLING_SECRET_KEY": "short-canary"}
    shell.configure(
        f'[accounts.k]\nprovider = "kling"\nbase_url = "{url}"\nkey_env = "KLING_ACCESS_KEY+KLING_SECRET_KEY"\n'
    )
    found = shell.run("doctor", "--offline")
    assert found.stderr.count("shorter than 32 bytes") == 1
    checked = shell.run("accounts", "--check")
    assert "units left" in checked.stderr
    assert not any("HMAC" in text or "canary" in text for text in (found.stderr, checked.stderr))


def test_doctor_names_the_line_of_a_wrong_configuration(shell: Shell) -> None:
    """
    Doctor exits with 2 at an unknown setting and tells its file and line.
    """
    shell.configure("[relay]\nunheard = 1\n")
    found = shell.run("doctor")
    assert found.returncode == 2
    assert "vidrelay.toml:6" in found.stderr


def test_doctor_sees_the_running_relay(shell: Shell) -> None:
    """
    Doctor tells the address of the relay that runs on this state directory.
    """
    shell.serve()
    found = shell.run("doctor", "--offline")
    assert found.returncode == 0
    assert "running at http://127.0.0.1:" in found.stderr


@pytest.mark.parametrize("name", ["cache", "assets"])
def test_serve_and_doctor_name_what_is_in_a_folders_place(shell: Shell, name: str) -> None:
    """
    Both exit with 3, and say which it is and what to do about it.
    """
    shell.state.mkdir(mode=0o700)
    (shell.state / name).write_text("mine")
    for command in (["serve"], ["doctor", "--offline"]):
        found = shell.run(*command)
        assert found.returncode == 3
        assert f"{name} is a link or a file" in found.stderr
        assert "Move it away" in found.stderr
    assert (shell.state / name).read_text() == "mine"


def test_doctor_counts_the_answers_that_were_only_written_down(shell: Shell) -> None:
    """
    What lies in the emergency journal is a note, with what to do; it stays there.
    """
    shell.state.mkdir(mode=0o700)
    (shell.state / "emergency.jsonl").write_text('\n{"task": "a"}\n\n{"ta')
    found = shell.run("doctor", "--offline")
    assert found.returncode == 0
    assert "2 answers of providers" in found.stderr
    assert "put back the relay.db" in found.stderr
    assert (shell.state / "emergency.jsonl").exists()


# Accounts


def test_accounts_tell_where_keys_were_found_and_try_them(shell: Shell) -> None:
    """
    `--check` says of each key whether its provider takes it, exits with 1 where one is refused, and makes no task.
    """
    url = first_line(shell.start("simulate", "--dialect", "vidu", "--key", "right-key-1")).split()[-1]
    shell.env |= {"RIGHT": "right-key-1", "WRONG": "wrong-key-1"}
    account = f'provider = "vidu"\nbase_url = "{url}/ent/v2"\n'
    shell.configure(f'[accounts.good]\n{account}key_env = "RIGHT"\n[accounts.bad]\n{account}key_env = "WRONG"\n')
    shown = shell.run("accounts")
    assert shown.returncode == 0
    assert "the environment variable RIGHT" in shown.stderr
    found = shell.run("accounts", "--check", "--json")
    checks = {one["account"]: one for one in json.loads(found.stdout)["checks"]}
    assert found.returncode == 1
    assert (checks["good"]["ok"], checks["bad"]["ok"], checks["preview"]["ok"]) == (True, False, None)
    assert "credits left" in checks["good"]["detail"]
    told = shell.run("accounts", "--check", "--resume", "good")
    assert told.returncode == 0
    assert "yes" in told.stderr
    assert "bad" not in told.stderr
    assert not any(key in told.stderr + found.stdout + shown.stderr for key in ("right-key-1", "wrong-key-1"))
    assert json.loads(shell.run("tasks", "--json").stdout)["tasks"] == []


# The cache


def test_the_cache_is_listed_checked_and_emptied(shell: Shell, provider: str) -> None:
    """
    `cache` lists results with their bytes, forgets one whose file is gone, and clears the rest, but not unasked.
    """
    path = Path(shell.run("generate", "A fox").stdout.strip())
    listed = json.loads(shell.run("cache", "ls", "--json").stdout)
    assert listed["bytes"] == path.stat().st_size
    assert listed["results"][0]["taskId"] in shell.run("cache", "ls").stderr
    assert json.loads(shell.run("cache", "verify", "--json").stdout) == {"forgotten": []}
    path.unlink()
    assert json.loads(shell.run("cache", "verify", "--json").stdout)["forgotten"] == [listed["results"][0]["taskId"]]
    shell.run("generate", "A hen")
    unasked = shell.run("cache", "clear")
    assert (unasked.returncode, unasked.stdout) == (1, "")
    assert "--yes" in unasked.stderr
    assert json.loads(shell.run("cache", "clear", "--yes", "--json").stdout) == {"cleared": 1}
    assert json.loads(shell.run("cache", "ls", "--json").stdout)["results"] == []
