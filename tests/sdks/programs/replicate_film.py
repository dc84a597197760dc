"""
The official `replicate` SDK against a relay's door: a film and a sound, uploaded and in line. Prints one JSON object.
"""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import replicate

BASE, KEY = sys.argv[1], os.environ["SDK_KEY"]
FILM, SOUND = (Path(name).read_bytes() for name in sys.argv[2:4])
MODEL = "minimax/video-01"


def main() -> dict[str, Any]:
    """
    Make a clip of both, and ask for the same with both in line.
    """
    client = replicate.Client(api_token=KEY, base_url=BASE)

    def made(**more: Any) -> Any:
        given = {"prompt": "a kite", "video": io.BytesIO(FILM), "audio": io.BytesIO(SOUND)}
        return client.models.predictions.create(model=MODEL, input=given, **more)

    uploaded = made()
    uploaded.wait()
    in_line = made(file_encoding_strategy="base64")
    file = client.files.create(io.BytesIO(FILM), filename="a.mp4")
    return {
        "status": uploaded.status,
        "same": in_line.id == uploaded.id,
        "shown": [uploaded.input[name].startswith(f"{BASE}/v1/files/") for name in ("video", "audio")],
        "file": [file.content_type, file.size == len(FILM)],
    }


print(json.dumps(main()))
