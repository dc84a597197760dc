"""
The calls about the result cache: a look, a check, and emptying it, each with the token only and by the right method.
"""

import pytest


@pytest.fixture
def done(served):
    served.relay.make()
    served.relay.finish("t1", b"0123456789")
    return served


async def test_the_kept_results_are_listed_with_their_sizes(done):
    """
    The list tells all bytes kept, and for each result its task and when it was saved.
    """
    told = (await done.client.get("/cache")).json()
    assert told["bytes"] == 10
    assert [result["taskId"] for result in told["results"]] == ["t1"]
    assert told["results"][0]["savedAt"] == "2026-11-30T12:00:00.123Z"


async def test_a_result_that_is_not_whole_is_forgotten(done):
    """
    A check forgets nothing while files are whole, and names the task whose file is gone.
    """
    assert (await done.client.post("/cache/verify")).json() == {"forgotten": []}
    (done.relay.folder / "t1-0.mp4").unlink()
    assert (await done.client.post("/cache/verify", json={})).json() == {"forgotten": ["t1"]}


async def test_clearing_deletes_every_result_and_says_how_many(done):
    """
    After clearing, the count is told and a result is gone.
    """
    assert (await done.client.post("/cache/clear")).json() == {"cleared": 1}
    assert (await done.client.get("/task/t1/result")).status_code == 410


@pytest.mark.parametrize("path", ["/cache/verify", "/cache/clear"])
async def test_effects_need_their_method_and_no_unknown_field(done, path):
    """
    By GET, with an unknown field or a wrong token, nothing of the cache is changed.
    """
    assert (await done.client.get(path)).status_code == 405
    assert (await done.client.post(path, json={"force": True})).status_code == 422
    assert (await done.client.post(path, headers={"X-Local-Token": "vrl_wrong"})).status_code == 403
    assert (await done.client.get("/cache")).json()["bytes"] == 10
