"""
ComfyUI's door over real processes: one job whichever way it came in, ids that outlive a kill, and a stop that waits for
no websocket.
"""

import time
from typing import Any

import httpx2
import pytest

from vidrelay.core.proof import door_key

pytestmark = pytest.mark.process

OWN = "0d7b4c1e-2f4e-4e57-9a0e-6c1f0a4b9d11"


def graph(text: str = "a boat", seed: int = 7) -> dict[str, Any]:
    """A workflow in API format, in which nothing is marked."""
    return {
        "3": {"class_type": "KSampler", "inputs": {"seed": seed, "positive": ["6", 0]}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": text}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["3", 0], "filename_prefix": "clips/boat"}},
    }


def comfyui(world: Any, *options: str, account: str = "", window: int = 2) -> Any:
    """A relay before a pretend ComfyUI server."""
    simulator = world.simulate("--dialect", "comfyui", "--run-seconds", "0.3", *options)
    world.configure(simulator, provider="comfyui", api="", account=account, window=window, relay='token = "keep"')
    world.start()
    return simulator


def test_a_graph_asked_for_natively_and_through_the_door_is_one(world):
    """Its seed is a part of it, and the client's name is not."""
    simulator = comfyui(world)
    native = world.generate("whatever people call it", extra={"graph": graph()})
    made = world.http.post("/comfyui/prompt", json={"prompt": graph(), "client_id": "c1"}).json()
    assert made["prompt_id"] == native["taskId"]
    other = world.http.post("/sim/api/prompt", json={"prompt": graph(seed=8), "client_id": "c1"}).json()
    for task_id in (made["prompt_id"], other["prompt_id"]):
        world.until(task_id, "done")
        told = world.http.get(f"/comfyui/history/{task_id}").json()[task_id]
        (file,) = told["outputs"]["9"]["images"]
        assert world.http.get("/comfyui/view", params=file).content[4:8] == b"ftyp"
    assert simulator.ledger()["creates"]["received"] == 2


def test_a_job_is_found_by_its_clients_own_id_after_a_kill(world):
    """The client that comes back asks for what it chose."""
    simulator = comfyui(world)
    assert world.http.post("/comfyui/prompt", json={"prompt": graph(), "prompt_id": OWN}).json()["prompt_id"] == OWN
    # Durable is not sent: of a create that dies on its way a server without history can rightly tell nothing.
    world.until_true(lambda: simulator.ledger()["jobs"])
    world.kill()
    world.start()
    world.until_true(lambda: OWN in world.http.get(f"/comfyui/history/{OWN}").json())
    assert list(world.http.get("/comfyui/history").json()) == [OWN]
    assert len(simulator.ledger()["jobs"]) == 1


@pytest.mark.parametrize("clears", [True, False])
def test_the_wish_to_stop_all_sends_nothing_more(world, clears):
    """One job waits at the server and seven here; none of those is sent when that one's place is free."""
    simulator = comfyui(world, "--queue-seconds", "60", window=1)
    ids = [
        world.http.post("/comfyui/prompt", json={"prompt": graph(seed=seed)}).json()["prompt_id"] for seed in range(8)
    ]
    world.until(ids[0], "running")
    world.http.post("/comfyui/queue", json={"clear": True} if clears else {"delete": ids}).raise_for_status()
    for task_id in ids:
        world.until(task_id, "cancelled")
    assert simulator.ledger()["creates"]["received"] == 1


def test_what_the_door_does_not_answer_is_passed_on_where_that_is_wanted(world):
    """With the door's key too; it never opens what is the relay's own."""
    comfyui(world, account="door_key = true\npass_through = true")
    token = world.http.headers.pop("X-Local-Token")
    key = door_key(token, account="sim")
    passed = world.http.get(f"/comfyui/~{key}/system_stats")
    assert (passed.status_code, "system" in passed.json()) == (200, True)
    assert world.http.get(f"/tasks/~{key}").status_code == 403
    assert world.http.get(f"/comfyui/~{key[::-1]}/system_stats").status_code == 403
    log = (world.state / "logs" / "relay.log").read_text()
    assert key not in log


def test_the_relay_stops_at_once_with_websockets_open(world):
    """One that listens, and one whose client does not read at all."""
    comfyui(world)
    address = f"ws://127.0.0.1:{world.http.base_url.port}/comfyui/ws"
    headers = dict(world.http.headers)
    with (
        httpx2.websocket(address, headers=headers, trust_env=False) as listening,
        httpx2.websocket(address, headers=headers, trust_env=False, keepalive_ping_interval_seconds=None),
    ):
        assert listening.receive_json(timeout=5)["type"] == "status"
        begun = time.monotonic()
        assert world.stop() == 0
        assert time.monotonic() - begun < 5
