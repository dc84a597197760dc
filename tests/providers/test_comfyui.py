"""
ComfyUI, held against its fact sheet and the pretend server in its words.
"""

import json
import re
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from vidrelay.core.adapter import Copied, NotThere, Search, Trouble, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.fingerprint import fingerprint
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, Failed, Found, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference, RemoteState, Task
from vidrelay.providers.comfyui.adapter import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken, Rehearsal
from vidrelay.testing.sheet import Sheet

KEY = "5f0c1c1e-7d3a-4d0e-9b1a-0123456789ab"
ID = "0d7b4c1e-2f4e-4e57-9a0e-6c1f0a4b9d11"
GRAPH = {
    "1": {
        "class_type": "EmptyImage",
        "inputs": {"width": "{width=64}", "height": "{height=48}", "batch_size": "{frames@8=8}", "color": "{seed}"},
    },
    "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 8}},
    "3": {
        "class_type": "SaveVideo",
        "inputs": {"video": ["2", 0], "filename_prefix": "relay/job1", "format": "auto", "codec": "auto"},
    },
    "4": {"class_type": "CLIPTextEncode", "inputs": {"text": "{prompt}, 4k", "no": "{negative=blurry}"}},
}
PICTURED = {**GRAPH, "5": {"class_type": "LoadImage", "inputs": {"image": "{first_frame}"}}}
FIELDS: dict[str, Any] = {
    "duration": 2,
    "resolution": "720p",
    "aspect_ratio": "16:9",
    "seed": 7,
    "negative_prompt": "rain",
    "extra": {"graph": GRAPH},
}
RUNNING = {
    "queue_running": [[3, ID, {"1": {}}, {"client_id": "relay", "tag": "relay-01J9"}, ["3"]]],
    "queue_pending": [],
}
EMPTY: dict[str, Any] = {"queue_running": [], "queue_pending": []}
ENTRY = {
    "prompt": [3, ID, {}, {"client_id": "relay", "tag": "relay-01J9"}, ["3"]],
    "outputs": {
        "3": {
            "images": [{"filename": "job1_00001_.mp4", "subfolder": "relay", "type": "output"}],
            "animated": [True],
        }
    },
    "status": {
        "status_str": "success",
        "completed": True,
        "messages": [["execution_start", {"prompt_id": ID, "timestamp": 1764480000000}]],
    },
    "meta": {},
}


class TestComfyUi(AdapterContract):
    """
    What holds for every provider. It has no status words: where a job is, says how it is doing.
    """

    sheet: ClassVar[Sheet] = Sheet(
        dialect="comfyui",
        make=make,
        fields=FIELDS,
        picture={**FIELDS, "extra": {"graph": PICTURED}},
        create_codes=dict.fromkeys(
            (
                *("no_prompt", "invalid_prompt", "missing_node_type", "prompt_no_outputs"),
                *("prompt_outputs_failed_validation", "invalid_prompt_id"),
            ),
            Meaning.REJECTED,
        ),
        refused=(
            ({"extra": {}}, "extra.graph"),
            ({"extra": {"graph": {"nodes": [], "links": []}}}, "extra.graph"),
            ({"extra": {"graph": {"1": {"inputs": {}}}}}, "extra.graph.1"),
            ({"extra": {"graph": GRAPH, "prompt_id": ID}}, "extra.prompt_id"),
            ({"extra": {"graph": {"1": {"class_type": "X"}}}}, "negativePrompt"),
            ({"style_preset": "anime"}, "stylePreset"),
            ({"model_version": "wan"}, "modelVersion"),
            ({"duration": 0}, "duration"),
            ({"resolution": "big"}, "resolution"),
            ({"aspect_ratio": "wide"}, "aspectRatio"),
            ({"references": (Reference(url="https://a.example/a.png"),)}, "references[0].url"),
            ({"references": (Reference(asset=PICTURE.id),)}, "references"),
            ({"references": (Reference(asset=PICTURE.id, role="mask"),)}, "references[0].role"),
        ),
    )


def of(it: Rehearsal, prompt: str = "a paper boat", **fields: Any) -> Task:
    """
    A task of that request, whose submission has our key.
    """
    return replace(it.task(prompt, **fields), submission_key=KEY)


def sent(it: Rehearsal, task: Task) -> dict[str, Any]:
    """
    The body of the task's create call.
    """
    requests, _ = converse(it.adapter.submit(task), reply({"prompt_id": ID, "number": 3, "node_errors": {}}))
    body = requests[0].body
    assert isinstance(body, bytes)
    told = json.loads(body)
    assert isinstance(told, dict)
    return told


# The graph


def test_the_graphs_of_the_how_to_are_taken() -> None:
    """Each JSON block of the page, as a whole request or as the graph of one."""
    page = (Path(__file__).parents[2] / "docs/howto/use-comfyui.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == 2
    it = TestComfyUi.sheet.rehearse()
    request, graph = blocks
    task = of(it, request["prompt"], duration=request["duration"], seed=request["seed"], extra=request["extra"])
    made = sent(it, task)["prompt"]
    assert made["2"]["inputs"]["text"] == "a paper boat in rain, film grain"
    assert (made["4"]["inputs"]["length"], made["5"]["inputs"]["seed"]) == (48, 7)
    made = sent(it, of(it, duration=2, extra={"graph": graph}))["prompt"]
    assert made["1"]["inputs"] == {"width": 64, "height": 48, "batch_size": 16, "color": 255}


def test_each_mark_gets_its_value() -> None:
    """A whole value keeps its kind, a mark within a text becomes text, and the author's graph is not touched."""
    it = TestComfyUi.sheet.rehearse()
    before = deepcopy(GRAPH)
    graph = sent(it, of(it, **FIELDS))["prompt"]
    assert graph["1"]["inputs"] == {"width": 1280, "height": 720, "batch_size": 16, "color": 7}
    assert graph["4"]["inputs"] == {"text": "a paper boat, 4k", "no": "rain"}
    assert graph["2"] == GRAPH["2"]
    assert before == GRAPH


def test_defaults_stand_in_for_what_is_not_given() -> None:
    """A mark may bring its own value; a seed that nobody chose is the job's own."""
    it = TestComfyUi.sheet.rehearse()
    task = of(it, extra={"graph": GRAPH})
    inputs = sent(it, task)["prompt"]["1"]["inputs"]
    assert {name: inputs[name] for name in ("width", "height", "batch_size")} == {
        "width": 64,
        "height": 48,
        "batch_size": 8,
    }
    assert isinstance(inputs["color"], int)
    again, other = (sent(it, replace(task, submission_key=key)) for key in (KEY, ID))
    assert again["prompt"]["1"]["inputs"] == inputs
    assert other["prompt"]["1"]["inputs"]["color"] != inputs["color"]
    assert sent(it, task)["prompt"]["4"]["inputs"]["no"] == "blurry"


def test_what_a_prompt_says_is_no_mark() -> None:
    """Braces that a person typed stay as they are."""
    it = TestComfyUi.sheet.rehearse()
    graph = sent(it, of(it, "{seed} {negative}", **FIELDS))["prompt"]
    assert graph["4"]["inputs"]["text"] == "{seed} {negative}, 4k"


def test_each_job_makes_a_file_of_its_own() -> None:
    """The file's name has the job's id in it, so that a repeated graph never points at an earlier file."""
    it = TestComfyUi.sheet.rehearse()
    assert sent(it, of(it, **FIELDS))["prompt"]["3"]["inputs"]["filename_prefix"] == f"relay/job1-{KEY}"


async def test_a_graph_that_is_run_twice_gives_two_files() -> None:
    """The server would answer an equal graph with the file of before."""
    it = TestComfyUi.sheet.rehearse()
    made = []
    for key in (KEY, ID):
        task = await it.submitted(replace(of(it, **FIELDS), submission_key=key))
        await it.clock.advance(60)
        made.append((await it.poll(task)).outputs)
    assert made[0] != made[1]


def test_a_mark_that_gets_nothing_is_refused_by_its_field() -> None:
    """Before anything is sent, with the way out."""
    it = TestComfyUi.sheet.rehearse()
    for mark, field in (
        ("{width}", "resolution"),
        ("{seconds}", "duration"),
        ("{frames@16}", "duration"),
        ("{model}", "modelVersion"),
        ("{picture1}", "references"),
        ("{frames}", "extra.graph"),
        ("{width=wide}", "extra.graph"),
    ):
        graph = {"1": {"class_type": "SaveVideo", "inputs": {"x": mark}}}
        with pytest.raises(InvalidRequest) as refusal:
            of(it, extra={"graph": graph})
        assert refusal.value.field == field, mark


def test_a_prompt_that_the_graph_has_no_place_for_still_tells_requests_apart() -> None:
    """A graph may do without one; then two prompts are two requests all the same."""
    it = TestComfyUi.sheet.rehearse()
    graph = {name: node for name, node in GRAPH.items() if name != "4"}
    told = [of(it, prompt, extra={"graph": graph}).parameters for prompt in ("a", "b", " a ")]
    prints = [
        fingerprint(
            account="x",
            provider="comfyui",
            parameters=parameters,
            pictures={},
            irrelevant=it.adapter.traits.irrelevant,
            prompts=it.adapter.traits.prompts,
        )
        for parameters in told
    ]
    assert prints[0] != prints[1]
    assert prints[0] == prints[2]


def test_pictures_go_where_they_are_marked() -> None:
    """A frame to its own mark, the others to the next number."""
    it = TestComfyUi.sheet.rehearse()
    inputs = {"a": "{picture1}", "b": "{last_frame}", "c": "{picture2}"}
    graph = {**GRAPH, "5": {"class_type": "LoadImage", "inputs": inputs}}
    roles = ("first_frame", "last_frame", None)
    pictures = [replace(PICTURE, id="sha256:" + digit * 64) for digit in "123"]
    task = of(
        it,
        references=tuple(Reference(asset=one.id, role=role) for one, role in zip(pictures, roles, strict=True)),
        assets={one.id: one for one in pictures},
        extra={"graph": graph},
    )
    for name, digit in (("a", "1"), ("b", "2"), ("c", "3")):
        picture = task.parameters["graph"]["5"]["inputs"][name]
        assert picture["$asset"] == "sha256:" + digit * 64
        picture["$copy"] = f"{digit}.png"
    assert sent(it, task)["prompt"]["5"]["inputs"] == {"a": "1.png", "b": "2.png", "c": "3.png"}


def test_a_picture_that_stands_alone_is_the_first_frame() -> None:
    """Without a role, as the command line gives it, it goes where the graph marks a first frame and nothing else."""
    it = TestComfyUi.sheet.rehearse()
    task = of(it, **{**FIELDS, "extra": {"graph": PICTURED}}, references=(Reference(asset=PICTURE.id),))
    assert task.parameters["graph"]["5"]["inputs"]["image"]["$asset"] == PICTURE.id


def test_a_picture_within_a_text_is_put_there_as_its_name() -> None:
    """It has no place of its own in the graph, so it stays among the values."""
    it = TestComfyUi.sheet.rehearse()
    graph = {**GRAPH, "5": {"class_type": "LoadImage", "inputs": {"image": "{first_frame} [input]"}}}
    task = of(it, **{**FIELDS, "extra": {"graph": graph}}, references=(Reference(asset=PICTURE.id),))
    task.parameters["values"]["first_frame"]["$copy"] = "a.png"
    assert sent(it, task)["prompt"]["5"]["inputs"]["image"] == "a.png [input]"


async def test_a_picture_is_called_what_the_server_calls_it() -> None:
    """Another of the same name makes it `name (1).png`, and a folder stands before it."""
    it = TestComfyUi.sheet.rehearse()
    picture = {"$asset": PICTURE.id, "mediaType": "image/png"}
    assert isinstance(await it.run(it.adapter.upload(picture)), Copied)
    for told, reference in (
        ({"name": "a (1).png", "subfolder": "", "type": "input"}, "a (1).png"),
        ({"name": "a.png", "subfolder": "x", "type": "input"}, "x/a.png"),
    ):
        assert converse(it.adapter.upload(picture), reply(told))[1] == Copied(reference=reference)
    assert isinstance(converse(it.adapter.upload(picture), reply(b"", status=400))[1], Failed)
    assert isinstance(converse(it.adapter.upload(picture), reply(b"", status=500))[1], Trouble)


def test_extra_goes_into_the_body_beside_the_graph() -> None:
    """What else `/prompt` takes is given as it is, and our id is added to extra_data."""
    it = TestComfyUi.sheet.rehearse()
    body = sent(it, of(it, **{**FIELDS, "extra": {"graph": GRAPH, "front": True, "extra_data": {"a": 1}}}))
    assert body["front"] is True
    assert body["extra_data"] == {"a": 1, "vidrelay": KEY}
    assert body["prompt_id"] == KEY
    assert set(body) == {"prompt", "prompt_id", "client_id", "extra_data", "front"}


@pytest.mark.parametrize("data", ["a tag", [1], {"vidrelay": "mine"}])
def test_extra_data_that_would_be_lost_is_refused(data: Any) -> None:
    """No object could be sent along with our id beside it, and our id is ours to say."""
    it = TestComfyUi.sheet.rehearse()
    with pytest.raises(InvalidRequest) as refusal:
        of(it, **{**FIELDS, "extra": {"graph": GRAPH, "extra_data": data}})
    assert refusal.value.field == "extra.extra_data"


def test_a_length_of_whole_seconds_is_a_whole_number() -> None:
    """2.0 and 2 are one request, and an input of whole numbers takes the one alone."""
    it = TestComfyUi.sheet.rehearse()
    graph = {**GRAPH, "6": {"class_type": "X", "inputs": {"a": "{seconds}", "b": "{seconds} s"}}}
    inputs = sent(it, of(it, **{**FIELDS, "duration": 2.0, "extra": {"graph": graph}}))["prompt"]["6"]["inputs"]
    assert inputs == {"a": 2, "b": "2 s"}
    assert isinstance(inputs["a"], int)


def test_no_word_of_an_error_shows_the_key() -> None:
    """Whichever field of it they stand in."""
    it = TestComfyUi.sheet.rehearse()
    told = {"error": {"type": "key-canary\u001b[2J", "message": "key-canary"}, "node_errors": {}}
    outcome = converse(it.adapter.submit(of(it, **FIELDS)), reply(told, status=400))[1]
    assert isinstance(outcome, Failed)
    assert "key-canary" not in outcome.problem.detail
    assert "\u001b" not in outcome.problem.detail


async def test_no_origin_is_sent() -> None:
    """One that is not the server's own would be refused with 403."""
    it = TestComfyUi.sheet.rehearse()
    task = await it.submitted(of(it, **FIELDS))
    await it.poll(task)
    assert not any(name.lower() == "origin" for request in it.requests for name in request.headers)


def test_an_id_is_a_lower_case_uuid_whatever_the_key() -> None:
    """Newer servers refuse any other."""
    it = TestComfyUi.sheet.rehearse()
    for key, expected in ((KEY.upper(), KEY), (KEY.replace("-", ""), KEY)):
        assert sent(it, replace(of(it, **FIELDS), submission_key=key))["prompt_id"] == expected
    made = sent(it, replace(of(it, **FIELDS), submission_key="not one"))["prompt_id"]
    assert len(made) == 36
    assert made == made.lower()


# What is read


def polled(*replies: Any) -> Any:
    """
    What a poll makes of these replies, in turn.
    """
    it = TestComfyUi.sheet.rehearse()
    task = replace(of(it, **FIELDS), remote_id=ID)
    return converse(it.adapter.poll(task), *(reply(one) for one in replies))[1]


def test_the_recorded_replies_of_the_sheet() -> None:
    """Accepted, in the queue, done."""
    it = TestComfyUi.sheet.rehearse()
    accepted = {"prompt_id": ID, "number": 3, "node_errors": {}}
    assert isinstance(converse(it.adapter.submit(of(it, **FIELDS)), reply(accepted))[1], Accepted)
    assert polled(RUNNING) == StillRunning(remote_state=RemoteState.WORKING)
    ready = polled(EMPTY, {ID: ENTRY})
    assert isinstance(ready, Ready)
    assert [one.url for one in ready.outputs] == [
        "http://127.0.0.1:8199/view?filename=job1_00001_.mp4&subfolder=relay&type=output"
    ]
    assert ready.times.started_at is not None


def test_the_place_in_line_goes_by_the_number() -> None:
    """The list is a heap, so its order says nothing; a job in front has a negative number."""
    pending = [[5, "x", {}, {}, []], [9, ID, {}, {}, []], [-1, "y", {}, {}, []], [7, "z", {}, {}, []]]
    assert polled({"queue_running": [], "queue_pending": pending}) == StillRunning(
        remote_state=RemoteState.WAITING, queue_position=3
    )


def test_every_list_of_files_is_looked_through() -> None:
    """Nodes list their files under names of their own; films come first, previews only where there is nothing else."""
    outputs = {
        "3": {"gifs": [{"filename": "b.mp4", "subfolder": "", "type": "output", "fullpath": "/x"}], "animated": [True]},
        "2": {"images": [{"filename": "a.png", "subfolder": "", "type": "output"}], "text": ["done"]},
        "4": {"images": [{"filename": "p.png", "subfolder": "", "type": "temp"}]},
    }
    seen = polled(EMPTY, {ID: {**ENTRY, "outputs": {"2": outputs["2"], "3": outputs["3"], "4": outputs["4"]}}})
    assert [one.url.partition("filename=")[2].partition("&")[0] for one in seen.outputs] == ["b.mp4", "a.png"]
    seen = polled(EMPTY, {ID: {**ENTRY, "outputs": {"4": outputs["4"]}}})
    assert seen.outputs[0].url.endswith("filename=p.png&subfolder=&type=temp")


def test_a_picture_that_was_put_in_is_no_result() -> None:
    """Some nodes show their input again; a graph that saved nothing failed all the same."""
    outputs = {"5": {"images": [{"filename": "in.png", "subfolder": "", "type": "input"}]}}
    assert isinstance(polled(EMPTY, {ID: {**ENTRY, "outputs": outputs}}), Failed)


def test_a_failure_says_which_node_and_why() -> None:
    """An interrupted job was cancelled, a done one without a file failed."""
    error = {"node_id": "7", "node_type": "KSampler", "exception_message": "out of memory"}
    for messages, code, detail in (
        ([["execution_error", error]], "remote_failed", "KSampler: out of memory"),
        ([["execution_interrupted", {"node_type": "KSampler"}]], "remote_cancelled", "KSampler: it was interrupted"),
        ([], "remote_failed", "it says error and no more"),
    ):
        status = {"status_str": "error", "completed": False, "messages": messages}
        seen = polled(EMPTY, {ID: {**ENTRY, "outputs": {}, "status": status}})
        assert isinstance(seen, Failed)
        assert (seen.problem.code, seen.problem.detail) == (code, detail)
    assert isinstance(polled(EMPTY, {ID: {**ENTRY, "outputs": {}}}), Failed)


def test_a_history_of_other_words_still_runs() -> None:
    """A status word that nobody knows ends nothing, an entry without a status is done where it has files."""
    status = {"status_str": "pondering", "completed": False, "messages": []}
    assert isinstance(polled(EMPTY, {ID: {**ENTRY, "status": status}}), StillRunning)
    assert isinstance(polled(EMPTY, {ID: {**ENTRY, "status": None}}), Ready)


def test_a_queue_that_cannot_be_read_proves_nothing() -> None:
    """One item that is none, and the job may be it."""
    for queue in ({}, {**EMPTY, "queue_pending": [[1]]}, {**EMPTY, "queue_running": [["1", ID]]}, {"queue_running": 1}):
        assert isinstance(polled(queue, {}), Trouble), queue
    assert isinstance(polled(EMPTY, {}), NotThere)


def test_a_job_that_ended_is_seen_behind_a_queue_that_cannot_be_read() -> None:
    """Hundreds of waiting graphs may be more than is taken in; the history has what is done, and a lost create."""
    it = TestComfyUi.sheet.rehearse()
    task = replace(of(it, **FIELDS), remote_id=KEY)
    entry = {KEY: ENTRY}
    long = {"queue_running": [], "queue_pending": [[n, f"x{n}", {"1": [[]] * 500}, {}, []] for n in range(300)]}
    for queue in (reply(long), reply(b"{")):
        assert isinstance(converse(it.adapter.poll(task), queue, reply(entry))[1], Ready)
        assert isinstance(converse(it.adapter.poll(task), queue, reply({}))[1], Trouble)
        many = converse(it.adapter.poll_many([task]), queue, reply(entry))[1]
        assert isinstance(many, dict)
        assert isinstance(many[task.id], Ready)
        now = it.clock.now()
        search = Search(sent_at=now, lost_at=now, elapsed=60.0, lost_ago=60.0, owned=frozenset())
        assert isinstance(converse(it.adapter.find(task, search), queue, reply(entry))[1], Found)
        absent = converse(it.adapter.find(task, search), queue, reply({}), reply({"x": ENTRY}))[1]
        assert isinstance(absent, Trouble)
    requests, outcome = converse(it.adapter.poll(task), reply(b"", status=500))
    assert isinstance(outcome, Trouble)
    assert len(requests) == 1


def test_what_is_wrong_with_a_graph_is_told() -> None:
    """With the node."""
    it = TestComfyUi.sheet.rehearse()
    errors = [{"type": "value_not_in_list", "message": "Value not in list", "details": "ckpt_name: 'x'"}]
    told = {
        "error": {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"},
        "node_errors": {"4": {"errors": errors, "class_type": "CheckpointLoaderSimple"}},
    }
    outcome = converse(it.adapter.submit(of(it, **FIELDS)), reply(told, status=400))[1]
    assert isinstance(outcome, Failed)
    assert outcome.problem.code == "rejected"
    assert "node 4 (CheckpointLoaderSimple): Value not in list, ckpt_name: 'x'" in outcome.problem.detail


# A lost create


async def test_absence_is_believed_where_no_restart_can_have_been() -> None:
    """An older job still in the history shows that; a while must have passed."""
    it = TestComfyUi.sheet.rehearse()
    await it.submitted(replace(of(it, **FIELDS), submission_key=ID))
    await it.clock.advance(300)
    task = of(it, **FIELDS)
    assert isinstance(await it.find(task), Undecided)
    await it.clock.advance(60)
    assert isinstance(await it.find(task, elapsed=60.0), Absent)
    it.engine.restart(forget=True)
    assert isinstance(await it.find(task, elapsed=60.0), Undecided)


async def test_a_job_that_came_later_proves_no_absence() -> None:
    """It may have been made after a restart."""
    it = TestComfyUi.sheet.rehearse()
    task = of(it, **FIELDS)
    it.engine.restart(forget=True)
    await it.submitted(replace(of(it, **FIELDS), submission_key=ID))
    await it.clock.advance(300)
    assert isinstance(await it.find(task, elapsed=300.0), Undecided)


async def test_a_lost_create_is_found_at_every_stage() -> None:
    """In the queue, at work, in the history; the queue is asked first."""
    for seconds, state in ((0, RemoteState.WAITING), (10, RemoteState.WORKING), (60, None)):
        it = TestComfyUi.sheet.rehearse()
        task = of(it, **FIELDS)
        it.arm("create-drop-after")
        with pytest.raises(Broken):
            await it.run(it.adapter.submit(task))
        await it.clock.advance(seconds)
        found = await it.find(task)
        assert isinstance(found, Found)
        assert (found.remote_id, found.remote_state) == (KEY, state)
        assert it.requests[1].url.endswith("/queue")


def test_a_server_that_gives_ids_of_its_own_is_known_by_the_tag() -> None:
    """What was sent along is kept by old servers too."""
    it = TestComfyUi.sheet.rehearse()
    now = it.clock.now()
    search = Search(sent_at=now, lost_at=now, elapsed=60.0, lost_ago=60.0, owned=frozenset())
    item = [3, ID, {}, {"vidrelay": KEY}, ["3"]]
    for replies in (
        [{"queue_running": [item], "queue_pending": []}],
        [EMPTY, {}, {ID: {**ENTRY, "prompt": item}}],
    ):
        found = converse(it.adapter.find(of(it, **FIELDS), search), *(reply(one) for one in replies))[1]
        assert isinstance(found, Found)
        assert found.remote_id == ID


# Cancel


async def test_a_waiting_job_is_taken_out_of_the_queue() -> None:
    """By its id, and nothing else is stopped."""
    it = TestComfyUi.sheet.rehearse()
    first = await it.submitted(replace(of(it, **FIELDS), submission_key=ID))
    second = await it.submitted(of(it, **FIELDS))
    await it.clock.advance(10)
    assert await it.run(it.adapter.cancel(second)) == Cancelled(outcome=CancelOutcome.STOPPED)
    assert [json.loads(one.body) for one in it.requests if one.method == "POST" and isinstance(one.body, bytes)][
        -1
    ] == {"delete": [KEY]}
    assert isinstance(await it.poll(first), StillRunning)


@pytest.mark.parametrize("remote_id", [None, "", "../queue", "a b"])
def test_nothing_is_interrupted_without_an_id(remote_id: str | None) -> None:
    """An interrupt that names no job stops whichever is at work, which may be somebody else's."""
    it = TestComfyUi.sheet.rehearse()
    requests, outcome = converse(it.adapter.cancel(replace(of(it, **FIELDS), remote_id=remote_id)))
    assert isinstance(outcome, Trouble)
    assert requests == []


def test_an_interrupt_that_takes_its_time_is_tried_again() -> None:
    """It acts between two nodes only; until then nothing is claimed."""
    it = TestComfyUi.sheet.rehearse()
    task = replace(of(it, **FIELDS), remote_id=ID)
    requests, outcome = converse(it.adapter.cancel(task), reply(RUNNING), reply(b""), reply(RUNNING))
    assert isinstance(outcome, Trouble)
    assert requests[1].url.endswith("/interrupt")
    assert json.loads(requests[1].body if isinstance(requests[1].body, bytes) else b"") == {"prompt_id": ID}


def test_a_job_that_began_meanwhile_is_interrupted() -> None:
    """Deleting what does not wait any more does nothing, and says nothing."""
    it = TestComfyUi.sheet.rehearse()
    task = replace(of(it, **FIELDS), remote_id=ID)
    waiting = {"queue_running": [], "queue_pending": RUNNING["queue_running"]}
    status = {"status_str": "error", "completed": False, "messages": [["execution_interrupted", {}]]}
    entry = {ID: {**ENTRY, "outputs": {}, "status": status}}
    replies = [waiting, b"", RUNNING, RUNNING, b"", EMPTY, entry]
    outcome = converse(it.adapter.cancel(task), *(reply(one) for one in replies))[1]
    assert outcome == Cancelled(outcome=CancelOutcome.STOPPED)


# The account


def test_only_a_server_on_this_machine_is_asked_at_will() -> None:
    """One in the network is asked once a second."""
    for base, floor in (("http://127.0.0.1:8188", 0.0), ("http://192.168.1.9:8188", 1.0)):
        traits = make(AdapterSettings(now=FakeClock().now, base_url=base)).traits
        assert traits.poll_floor == floor
        assert traits.longest_run >= timedelta(hours=1)
