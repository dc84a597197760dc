"""
A program like ComfyUI's own example of its interface: urllib and `websocket-client`, an id that the program chooses,
and no key. What it saw is printed as one JSON object.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import websocket
from picture import PNG

SERVER = sys.argv[1].removeprefix("http://")
CLIENT = str(uuid.uuid4())


def graph(text: str, image: str) -> dict[str, Any]:
    """
    A workflow in API format.
    """
    return {
        "3": {"class_type": "KSampler", "inputs": {"seed": 8566257, "steps": 20, "positive": ["6", 0]}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": text, "image": ["10", 0]}},
        "10": {"class_type": "LoadImage", "inputs": {"image": image}},
        "12": {"class_type": "SaveVideo", "inputs": {"video": ["3", 0], "filename_prefix": "ComfyUI"}},
    }


def call(path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, bytes]:
    """
    One call: its status and its body.
    """
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"http://{SERVER}/{path}", data=data, headers={"Content-Type": content_type})
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def upload(name: str) -> str:
    """
    Put a picture into the input folder.
    """
    head = f'--x\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\nContent-Type: image/png\r\n\r\n'
    _, body = call("upload/image", head.encode() + PNG + b"\r\n--x--\r\n", "multipart/form-data; boundary=x")
    told: str = json.loads(body)["name"]
    return told


def queue_prompt(prompt: dict[str, Any], prompt_id: str, client: str = CLIENT) -> int:
    """
    As the example does, which does not look at the answer.
    """
    return call("prompt", {"prompt": prompt, "client_id": client, "prompt_id": prompt_id})[0]


def wait(ws: websocket.WebSocket, prompt_id: str) -> list[str]:
    """
    The types of what is told until the job has ended.
    """
    seen: list[str] = []
    while True:
        message = json.loads(ws.recv())
        data = message["data"]
        if data.get("prompt_id") == prompt_id:
            seen.append(message["type"])
        if message["type"] == "executing" and data["node"] is None and data["prompt_id"] == prompt_id:
            return seen


def entry(prompt_id: str) -> Any:
    """
    What the history says of a job.
    """
    return json.loads(call(f"history/{prompt_id}")[1])[prompt_id]


def files(prompt_id: str) -> dict[str, list[bool]]:
    """
    Fetch what a job made, by node: whether each is a film.
    """
    found: dict[str, list[bool]] = {}
    for node, output in entry(prompt_id)["outputs"].items():
        for image in output.get("images", []):
            _, data = call(f"view?{urllib.parse.urlencode(image)}")
            found.setdefault(node, []).append(data[4:8] == b"ftyp")
    return found


def connected(client: str = CLIENT) -> websocket.WebSocket:
    """
    A websocket of that client.
    """
    ws = websocket.WebSocket()
    ws.connect(f"ws://{SERVER}/ws?clientId={client}", timeout=30)
    return ws


def one_of_several(prompt: dict[str, Any]) -> dict[str, list[bool]]:
    """
    A client of its own that makes the job and waits for it.
    """
    client, prompt_id = str(uuid.uuid4()), str(uuid.uuid4())
    ws = connected(client)
    queue_prompt(prompt, prompt_id, client)
    wait(ws, prompt_id)
    ws.close()
    return files(prompt_id)


seen: dict[str, Any] = {}
ws = connected()
uploaded = upload("boat.png")
first = str(uuid.uuid4())
seen["queued"] = queue_prompt(graph("a paper boat", uploaded), first)
told = wait(ws, first)
seen["told"] = [told[0], told[-1], "execution_success" in told]
seen["files"] = files(first)
made = json.loads(call("api/prompt", {"prompt": graph("a [fail] boat", uploaded), "client_id": CLIENT})[1])
seen["failed"] = ["execution_error" in wait(ws, made["prompt_id"]), entry(made["prompt_id"])["status"]["status_str"]]
endless = str(uuid.uuid4())
queue_prompt(graph("a [forever] boat", uploaded), endless)
while json.loads(ws.recv())["type"] != "execution_start":
    pass
queue = json.loads(call("queue")[1])
seen["running"] = [job[1] == endless for job in queue["queue_running"]]
seen["interrupted"] = call("interrupt", {"prompt_id": endless})[0]
seen["then"] = ["execution_interrupted" in wait(ws, endless), entry(endless)["status"]["status_str"]]
seen["unknown"] = json.loads(call(f"history/{uuid.uuid4()}")[1])
seen["no_graph"] = call("prompt", {"prompt": {}})[0] >= 400
with ThreadPoolExecutor() as pool:
    seen["at_once"] = list(pool.map(one_of_several, [graph("the same boat", uploaded)] * 3))
ws.close()
print(json.dumps(seen))
