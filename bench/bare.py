"""
What the relay is held against: the same answers from bare Starlette routes, on the relay's own uvicorn settings.

    python -m bench.bare PORT FILE

`FILE` holds a task's JSON as the relay answers it. `GET /task/{id}` gives it; `POST /generate` reads the JSON body and
gives it with 202. No gate, no lookup, nothing kept.
"""

import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def app(task: dict[str, Any]) -> Starlette:
    """
    The two routes.
    """

    async def get(request: Request) -> JSONResponse:
        return JSONResponse(task | {"taskId": request.path_params["id"]})

    async def generate(request: Request) -> JSONResponse:
        body = await request.json()
        return JSONResponse(task | {"request": body}, status_code=202)

    return Starlette(routes=[Route("/task/{id}", get), Route("/generate", generate, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(
        app(json.loads(Path(sys.argv[2]).read_text())),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        access_log=False,
        server_header=False,
        log_level="warning",
    )
