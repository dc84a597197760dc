"""
A create's body whose values are of other types than they must be: the pretend provider answers as it refuses anything,
and whatever it made of one can be asked for.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import pytest

from vidrelay.core.messages import Form, HttpRequest, Json
from vidrelay.core.task import Reference, Task
from vidrelay.simulator.options import DIALECTS
from vidrelay.testing.rehearsal import PICTURE, Rehearsal, rehearse, written

WRONG: tuple[Any, ...] = (None, "x", -7, 7.5, True, [], [7], [{}], {}, {"x": 7}, 10**400)
CLIP = {"aspect_ratio": "16:9", "resolution": "720p"}
GRAPH = {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "text": "{prompt}"}},
    "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 8}},
    "3": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "a"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    A dialect, the adapter that writes its creates, and what is asked for.
    """

    dialect: str
    provider: str = ""
    account_dialect: str | None = None
    path: str = ""
    key: str = "id:secret-canary"
    fields: dict[str, Any] = field(default_factory=dict)
    pictured: bool = True

    def rehearse(self) -> Rehearsal:
        """
        Both sides, without a limit to how many.
        """
        named = (self.provider or self.dialect).replace("-", "_")
        make = import_module(f"vidrelay.providers.{named}.adapter").make
        return rehearse(make, self.dialect, path=self.path, key=self.key, account_dialect=self.account_dialect)

    async def create(self) -> tuple[Task, HttpRequest, dict[str, Any]]:
        """
        A task, its create as the adapter writes it, and the body of that.
        """
        it = self.rehearse()
        shown = (Reference(asset=PICTURE.id, role="first_frame"),) if self.pictured else ()
        task = await it.submitted(it.task(**self.fields, references=shown))
        (sent,) = [request for request in it.requests if request.creates]
        if isinstance(sent.body, Form):
            return task, sent, dict(sent.body.fields)
        body: dict[str, Any] = json.loads(written(sent)[1])
        return task, sent, body


CASES = (
    *(Case(dialect=name, provider="openai", path="/v1", fields={"duration": 4}) for name in DIALECTS[:3]),
    Case(dialect="replicate", fields={"model_version": "minimax/video-01", "duration": 5}),
    Case(dialect="fal", fields={"model_version": "fal-ai/kling-video/v2/master/text-to-video", "duration": 5}),
    Case(dialect="runway", fields={"model_version": "gen4_turbo", "duration": 5}),
    Case(dialect="luma", path="/dream-machine/v1", fields={"model_version": "ray-2", "duration": 5}, pictured=False),
    Case(dialect="luma-agents", path="/v1", fields={"duration": 5, **CLIP}),
    Case(dialect="google", path="/v1beta", fields={"duration": 8, **CLIP}),
    Case(dialect="google", path="/v1beta", fields={"duration": 3, **CLIP, "model_version": "gemini-omni-1.2-flash"}),
    Case(dialect="xai", path="/v1", fields={"duration": 5, "aspect_ratio": "16:9"}),
    Case(dialect="openrouter", path="/api/v1", fields={"model_version": "google/veo-3.1", "duration": 5, **CLIP}),
    Case(dialect="kling", fields={"duration": 5}),
    Case(dialect="minimax", account_dialect="v1", fields={"duration": 6, "resolution": "1080P"}),
    Case(dialect="minimax-v2", provider="minimax", fields={"duration": 5}),
    Case(dialect="dashscope", path="/api/v1", fields={"duration": 5, "model_version": "wan2.7-i2v"}),
    Case(dialect="ark", path="/api/v3", fields={"duration": 5, **CLIP}),
    Case(dialect="vidu", path="/ent/v2", fields={"duration": 5}),
    Case(dialect="zhipu", path="/api/paas/v4", key="id.secret", fields={"duration": 5}),
    Case(dialect="jimeng", fields={"duration": 5, "seed": 7}),
    Case(dialect="tencent", account_dialect="hunyuan"),
    Case(dialect="tencent", account_dialect="kling", fields={"duration": 5}),
    Case(dialect="new-api", path="/v1", fields={"model_version": "kling-v2-6", "duration": 5}),
    Case(dialect="comfyui", fields={"extra": {"graph": GRAPH}}, pictured=False),
)


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """
    Where something stands in a body, however deep.
    """
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*before, name)
        yield from places(one, (*before, name))


def changed(body: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """
    The body with another value there.
    """
    made = copy.deepcopy(body)
    at: Any = made
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    return made


def test_every_dialect_has_a_case() -> None:
    """One that is added is held against wrong bodies too."""
    assert {case.dialect for case in CASES} == set(DIALECTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}-{case.account_dialect or len(case.fields)}")
async def test_a_value_of_another_type_is_answered(case: Case) -> None:
    """It is refused and nothing is made, or taken, and then its status is told before and after its end."""
    task, sent, body = await case.create()
    for place in places(body):
        for value in WRONG:
            it = case.rehearse()
            wrong = changed(body, place, value)
            answer = await it.send(replace(sent, body=Json(value=wrong)))
            assert answer.status < 500, (place, value)
            jobs = list(it.engine.jobs.values())
            if answer.status >= 400:
                assert not jobs, (place, value)
            for job in jobs:
                made = replace(task, remote_id=job.id)
                await it.poll(made)
                it.engine.finish()
                await it.poll(made)
                await it.send(HttpRequest(method="GET", url=sent.url, headers=sent.headers))
