"""
ComfyUI's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import (
    Cancel,
    FileReply,
    FormBody,
    Keep,
    Kept,
    Live,
    Look,
    Page,
    Part,
    Phase,
    SocketDoor,
    Submit,
    View,
)
from vidrelay.core.errors import InvalidRequest, UnknownAsset, UnknownTask
from vidrelay.core.task import RemoteFile, Request, Standing, State
from vidrelay.providers.comfyui import parameters
from vidrelay.providers.comfyui.adapter import make as make_adapter
from vidrelay.providers.comfyui.door import make
from vidrelay.providers.comfyui.telling import ComfyUiHearing
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.doors import ASSET, FILM, Create, DoorContract, DoorSheet, call_door, stored, usual, view_of
from vidrelay.testing.records import make_file, make_task

DOOR = make(None)
GRAPH: dict[str, Any] = {
    "3": {"class_type": "KSampler", "inputs": {"seed": 7, "steps": 20, "positive": ["6", 0]}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a {boat|ship} in {prompt}"}},
    "9": {"class_type": "SaveVideo", "inputs": {"video": ["3", 0], "filename_prefix": "clips/boat"}},
}
NATIVE = {**GRAPH, "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a boat"}}}
PICTURED = {**NATIVE, "4": {"class_type": "LoadImage", "inputs": {"image": "{first_frame}"}}}
FILMED = {**NATIVE, "4": {"class_type": "LoadVideo", "inputs": {"file": f"boat-{'ab' * 32}.mp4"}}}
UPLOADED = {**NATIVE, "4": {"class_type": "LoadImage", "inputs": {"image": f"boat-{'ab' * 32}.png [input]"}}}
BOAT = Request(prompt="a boat", extra={"graph": NATIVE})


def word(said: Any) -> Any:
    """The status word of a history's entry; None where there is none yet."""
    return next(iter(said.values()))["status"]["status_str"] if said else None


class TestComfyUiDoor(DoorContract):
    """What holds for every door. A job that has not ended is not in the history."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=make_adapter(
            AdapterSettings(key=None, base_url="http://127.0.0.1:8188", now=lambda: datetime.now(UTC))
        ),
        creates=(
            Create(path="/prompt", body={"prompt": NATIVE, "client_id": "c1"}, same=BOAT),
            Create(path="/api/prompt", body={"prompt": NATIVE, "extra_data": {"client_id": "c2"}}, same=BOAT),
            Create(
                path="/prompt",
                body={"prompt": UPLOADED},
                same=replace(BOAT, extra={"graph": PICTURED}),
                picture="first_frame",
            ),
        ),
        media=((Create(path="/prompt", body={"prompt": FILMED}), FILM, None),),
        status="/history/{id}",
        content="/view?filename={id}-0.mp4&subfolder=vidrelay&type=output",
        word=word,
        words={
            Phase.WAITING: None,
            Phase.WORKING: None,
            Phase.DONE: "success",
            Phase.FAILED: "error",
            Phase.CANCELLED: "error",
            Phase.EXPIRED: "error",
        },
    )


def created(body: dict[str, Any], grant: Any = usual) -> Submit:
    """The wish that a create call ends in."""
    wishes = call_door(DOOR, "POST", "/prompt", body, grant=grant).wishes
    made = wishes[-1]
    assert isinstance(made, Submit)
    return made


def of_graph(state: State, graph: dict[str, Any] = GRAPH, *, working: bool = False, **more: Any) -> View:
    """A task of this door in that state."""
    return view_of(state, task=make_task(parameters={"graph": graph, **more}), working=working)


def test_a_graph_goes_on_as_it_came() -> None:
    """What looks like a mark of ours is a text of somebody's own, and the client's name is no part of the job."""
    new = created({"prompt": GRAPH, "client_id": "c", "front": True}).new
    assert new.prepared.parameters == {"graph": GRAPH, "front": True}
    assert (new.listener, new.known_as, new.prompt) == ("c", None, "a {boat|ship} in {prompt}")
    task = make_task(parameters=new.prepared.parameters, submission_key="k")
    body = next(TestComfyUiDoor.sheet.adapter.submit(task)).body
    assert b"a {boat|ship} in {prompt}" in body


def test_a_seed_in_the_graph_counts() -> None:
    """Another seed is another job."""
    contract, (create, *_) = TestComfyUiDoor(), TestComfyUiDoor.sheet.creates
    other = {**NATIVE, "3": {"class_type": "KSampler", "inputs": {"seed": 8, "steps": 20, "positive": ["6", 0]}}}
    prints = {contract._fingerprint(contract._new(create, body).prepared) for body in (None, {"prompt": other})}
    assert len(prints) == 2


def test_an_id_of_the_clients_own_is_its_answer_and_no_part_of_the_job() -> None:
    """The newer example of ComfyUI's chooses the id and never looks at the answer."""
    body = {"prompt": NATIVE, "prompt_id": "0d7b4c1e-2f4e-4e57-9a0e-6c1f0a4b9d11"}
    assert call_door(DOOR, "POST", "/prompt", body).json["prompt_id"] == body["prompt_id"]
    contract = TestComfyUiDoor()
    new = created(body).new
    assert new.known_as == body["prompt_id"]
    assert contract._fingerprint(new.prepared) == contract._fingerprint(created({"prompt": NATIVE}).new.prepared)
    with pytest.raises(InvalidRequest):
        created({"prompt": NATIVE, "prompt_id": "a/b"})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": {"nodes": []}},
        {"prompt": {"1": {"inputs": {}}}},
        {"prompt": NATIVE, "values": {"prompt": "x"}},
        {"prompt": NATIVE, "graph": NATIVE},
        {"prompt": NATIVE, "extra_data": {"vidrelay": "x"}},
        {"prompt": NATIVE, "extra_data": {"api_key_comfy_org": "secret"}},
    ],
)
def test_what_is_no_graph_or_holds_a_key_is_refused(body: dict[str, Any]) -> None:
    """A key in a graph's extra data would lie in the database in the clear."""
    with pytest.raises(InvalidRequest) as refusal:
        created(body)
    assert "secret" not in str(refusal.value)


def test_a_picture_is_meant_by_the_name_that_its_upload_was_given_or_had() -> None:
    """Both, in the file's field alone; a name that nobody uploaded lies at the server."""
    part = Part(number=0, name="image", filename="my boat.png", media_type="image/png", size_bytes=900)
    form = FormBody(fields=(("subfolder", "x"),), files=(part,))
    called = call_door(DOOR, "POST", "/upload/image", form)
    assert called.json == {"name": f"my boat-{'ab' * 32}.png", "subfolder": "", "type": "input"}
    assert called.wishes == [Keep(media=part, name="x/my boat.png")]

    def grant(wish: Any) -> Any:
        if isinstance(wish, Keep):
            assert isinstance(wish.media, Kept)
            if wish.media.asset not in (ASSET.id, "x/my boat.png"):
                raise UnknownAsset
            return ASSET
        return usual(wish)

    for name, known in ((called.json["name"], True), ("x/my boat.png", True), ("example.png", False)):
        graph = {**GRAPH, "4": {"class_type": "LoadImage", "inputs": {"image": name}}}
        sent = created({"prompt": graph}, grant).new.prepared.parameters["graph"]["4"]["inputs"]["image"]
        assert sent == (Kept(asset=ASSET.id) if known else name)
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", "/upload/image", FormBody())


def test_the_queue_shows_what_works_and_what_waits() -> None:
    """In the shape of ComfyUI's, with the picture's file name in the graph."""
    graph = stored({**NATIVE, "4": {"class_type": "LoadImage", "inputs": {"image": Kept(asset=ASSET.id)}}})
    works = of_graph(State.RUNNING, graph, working=True, prompt_id="mine")
    waits = of_graph(State.QUEUED)

    def grant(wish: Any) -> Any:
        assert isinstance(wish, Live)
        return [works, waits]

    told = call_door(DOOR, "GET", "/api/queue", grant=grant).json
    ((_, running, shown, _, saving),), ((_, pending, *_),) = told["queue_running"], told["queue_pending"]
    assert (running, pending, saving) == ("mine", waits.task.id, ["9"])
    assert shown["4"]["inputs"]["image"] == f"vidrelay-{'ab' * 16}.png"
    assert call_door(DOOR, "GET", "/prompt", grant=grant).json == {"exec_info": {"queue_remaining": 2}}


def stopped(path: str, body: Any, *views: View) -> list[str]:
    """The tasks that the call stops."""

    def grant(wish: Any) -> Any:
        if isinstance(wish, Live):
            return list(views)
        if isinstance(wish, Look):
            raise UnknownTask
        return views[0]

    wishes = call_door(DOOR, "POST", path, body, grant=grant).wishes
    return [wish.task_id for wish in wishes if isinstance(wish, Cancel)]


def test_only_what_waits_is_deleted_and_only_what_works_is_interrupted() -> None:
    """As at ComfyUI, and an id that nobody knows is passed over; what is not named is not interrupted at all."""
    waits, works = of_graph(State.QUEUED, prompt_id="mine"), of_graph(State.RUNNING, working=True)
    both = (waits, works)
    assert stopped("/queue", {"clear": True}, *both) == [waits.task.id]
    assert stopped("/queue", {"delete": ["mine", works.task.id, "nobody", 7]}, *both) == [waits.task.id]
    assert stopped("/interrupt", {"prompt_id": works.task.id}, *both) == [works.task.id]
    assert stopped("/interrupt", {"prompt_id": "mine"}, *both) == []
    for body in (None, {}, {"prompt_id": ""}):
        with pytest.raises(InvalidRequest):
            stopped("/interrupt", body, *both)


def test_what_waits_here_is_stopped_before_a_place_is_freed() -> None:
    """From the end of the line on, and only then what the server has: nothing is sent after the wish to stop."""
    there, *here = [of_graph(state) for state in (State.RUNNING, State.QUEUED, State.QUEUED)]
    views = [replace(view, task=replace(view.task, seq=seq)) for seq, view in enumerate((there, *here))]
    ids = [view.task.id for view in views]
    for body in ({"clear": True}, {"delete": ids}, {"clear": True, "delete": ids}):
        assert stopped("/queue", body, *views) == ids[::-1]
        assert stopped("/queue", body, *views[1:], views[0]) == [ids[2], ids[1], ids[0]]


def test_an_id_that_was_chosen_twice_means_the_latest() -> None:
    """The first job of that id, another one, is not stopped for it."""
    first, latest = of_graph(State.QUEUED, prompt_id="mine"), of_graph(State.QUEUED)

    def grant(wish: Any) -> Any:
        return [first, latest] if isinstance(wish, Live) else latest

    wishes = call_door(DOOR, "POST", "/queue", {"delete": ["mine"]}, grant=grant).wishes
    assert [wish.task_id for wish in wishes if isinstance(wish, Cancel)] == [latest.task.id]


def test_an_entry_of_the_history_leads_to_the_files_by_their_nodes() -> None:
    """Each file stands under the node whose prefix its name at the server begins with."""
    graph = {**GRAPH, "12": {"class_type": "VHS_VideoCombine", "inputs": {"filename_prefix": "gif"}}}
    view = of_graph(State.DONE, graph)
    assert view.task.submission_key is not None
    ours = parameters.id_of(view.task.submission_key)
    urls = [f"http://h/view?filename={name}-{ours}_1_.mp4&subfolder=&type=output" for name in ("boat", "gif")]
    files = tuple(make_file(index, task_id=view.task.id) for index in range(2))
    view = replace(view, task=replace(view.task, outputs=tuple(RemoteFile(url=url) for url in urls), files=files))
    told = call_door(DOOR, "GET", f"/history/{view.task.id}", grant=lambda _: view).json[view.task.id]
    shown = {"subfolder": "vidrelay", "type": "output"}
    assert told["outputs"] == {
        "9": {"images": [{"filename": f"{view.task.id}-0.mp4", **shown}], "animated": [True]},
        "12": {"gifs": [{"filename": f"{view.task.id}-1.mp4", **shown}], "animated": [True]},
    }
    assert [name for name, _ in told["status"]["messages"]][-1] == "execution_success"


def test_a_client_finds_its_job_by_its_own_id_after_a_restart() -> None:
    """The task keeps the id that its first client chose; one that nobody has is no entry, and no error."""
    view = of_graph(State.DONE, prompt_id="mine")

    def grant(wish: Any) -> Any:
        if isinstance(wish, Page):
            return [of_graph(State.DONE), view]
        raise UnknownTask

    assert list(call_door(DOOR, "GET", "/history/mine", grant=grant).json) == ["mine"]
    assert call_door(DOOR, "GET", "/history/nobody", grant=grant).json == {}


def test_the_history_is_told_from_its_oldest_on() -> None:
    """`max_items` are the newest, and `offset` counts from the oldest."""
    views = [of_graph(State.DONE) for _ in range(4)]

    def told(query: str) -> list[str]:
        return list(call_door(DOOR, "GET", f"/history?{query}", grant=lambda _: views).json)

    ids = [view.task.id for view in reversed(views)]
    assert told("") == ids
    assert told("max_items=2") == ids[2:]
    assert told("max_items=2&offset=1") == ids[1:3]


@pytest.mark.parametrize("query", ["filename=../../etc/passwd", "filename=a.png&type=input", "", "filename=x-0.mp4"])
def test_only_a_result_of_this_account_is_to_be_viewed(query: str) -> None:
    """No other name is a file here, and the task is asked for as this account's."""

    def grant(wish: Any) -> Any:
        assert wish == Look(task_id="x")
        raise UnknownTask

    with pytest.raises(UnknownTask):
        call_door(DOOR, "GET", f"/view?{query}", grant=grant)


# The websocket


def heard(*views: tuple[View, bool], known_as: str | None = None) -> list[tuple[str, Any]]:
    """What a client is told of these states of a task, one after another: each message's type, and what it says."""
    hearing = ComfyUiHearing("c1")
    told = [one for view, anew in views for one in hearing.tell(view, known_as=known_as, anew=anew)]
    assert {one["data"]["prompt_id"] for one in told} <= {known_as or views[0][0].task.id}
    return [(one["type"], one["data"].get("node", one["data"].get("value"))) for one in told]


def test_a_job_is_told_from_its_start_to_its_end_once() -> None:
    """In the order of a server of 0.3.64, which ends with `executing` without a node."""
    waits, works, done = of_graph(State.QUEUED), of_graph(State.RUNNING, working=True), of_graph(State.DONE)
    works = replace(works, task=replace(works.task, id=waits.task.id), standing=Standing(progress=0.256))
    done = replace(done, task=replace(done.task, id=waits.task.id))
    steps = [(view, False) for view in (waits, works, works, done, done)]
    told = heard(*steps)
    begun = [("execution_start", None), ("execution_cached", None)]
    ended = [("executed", "9"), ("execution_success", None), ("executing", None)]
    assert told == [*begun, ("executing", "9"), ("progress", "9"), *ended]
    # One who asks once more for what is there already is told all of it.
    assert heard((done, True), (done, True), known_as="mine") == [*begun, *ended] * 2


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (State.FAILED, "execution_error"),
        (State.CANCELLED, "execution_interrupted"),
        (State.EXPIRED, "execution_interrupted"),
    ],
)
def test_a_job_that_fails_is_told_with_why_and_ends_too(state: State, name: str) -> None:
    """A client that waits for the end must not wait for ever."""
    told = heard((of_graph(state), False))
    assert [one for one, _ in told][-2:] == [name, "executing"]


def test_who_comes_in_is_told_its_name_and_how_long_the_queue_is() -> None:
    """And that again when it has changed."""
    assert isinstance(DOOR, SocketDoor)
    hearing = ComfyUiHearing("c1")
    (first,) = hearing.greet([of_graph(State.QUEUED)])
    assert first == {"type": "status", "data": {"status": {"exec_info": {"queue_remaining": 1}}, "sid": "c1"}}
    assert hearing.count(1) == []
    assert [one["type"] for one in hearing.count(0)] == ["status"]


def test_the_file_of_a_view_is_the_tasks_own() -> None:
    """By whichever id it was asked for."""
    view = of_graph(State.DONE)
    called = call_door(DOOR, "GET", "/view?filename=mine-0.mp4", grant=lambda _: view)
    assert called.reply == FileReply(task_id=view.task.id, index=0)
