"""
Many relays started at once on one state directory.
"""

import json
import signal
import subprocess
import time
from dataclasses import dataclass

from .lives import READY, Life


@dataclass
class Race:
    """
    Rounds run, winners in all, losers that exited 3 and told the winner's address, and everything else.
    """

    rounds: int = 0
    winners: int = 0
    losers: int = 0
    others: int = 0


def race(life: Life, *, starts: int, rounds: int) -> Race:
    """
    So often so many starts at once; the winner is stopped after each round.
    """
    outcome = Race()
    for _ in range(rounds):
        children = [life.command("serve", stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(starts)]
        try:
            _judge(life, children, outcome)
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                child.communicate()
        outcome.rounds += 1
    return outcome


def _judge(life: Life, children: list[subprocess.Popen[str]], outcome: Race) -> None:
    deadline = time.monotonic() + 60
    while sum(child.poll() is None for child in children) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    running = [child for child in children if child.poll() is None]
    if len(running) != 1:
        outcome.others += len(running) or 1
        return
    found = READY.search(running[0].stdout.readline())
    told = json.loads((life.state / "relay.json").read_text())
    if found is None or told["port"] != int(found[1]) or told["pid"] != running[0].pid:
        outcome.others += 1
        return
    outcome.winners += 1
    for child in children:
        if child is not running[0]:
            right = child.returncode == 3 and f"http://127.0.0.1:{told['port']}" in child.stderr.read()
            outcome.losers += right
            outcome.others += not right
    running[0].send_signal(signal.SIGTERM)
    if running[0].wait(30) != 0:
        outcome.others += 1
