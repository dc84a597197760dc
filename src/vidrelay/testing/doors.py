"""
The contract suite of doors: what holds for every provider's interface, and a way to call one without a server.

A provider's test file says what is its own in a `DoorSheet`, and inherits the rest:

    class TestReplicateDoor(DoorContract):
        sheet = DoorSheet(door=make(None), adapter=..., ...)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest
from starlette.routing import compile_path

from vidrelay.core.adapter import Adapter, Prepared, asset_parameter
from vidrelay.core.door import (
    Door,
    DoorCall,
    DoorReply,
    FileReply,
    FormBody,
    Inlined,
    JsonReply,
    Keep,
    Kept,
    Live,
    NewTask,
    Page,
    Part,
    Phase,
    Submit,
    View,
    Wish,
)
from vidrelay.core.errors import UnknownTask, VidrelayError
from vidrelay.core.fingerprint import fingerprint
from vidrelay.core.media import family_of
from vidrelay.core.messages import Form, FormFile, Inline, Json
from vidrelay.core.task import Asset, Problem, Reference, RemoteState, Request, Standing, State, Task
from vidrelay.testing.records import events_to, make_task, moved

BASE = "http://127.0.0.1:61000/door"
ASSET = Asset(
    id="sha256:" + "ab" * 32, pixels="pixels-1", width=640, height=480, size_bytes=900, media_type="image/png"
)
FILM_URI, SOUND_URI = "data:video/mp4;base64,AAAA", "data:audio/wav;base64,UklG"
COPY = "https://copies.test/1.png"
FRESH = "019308e64f80" + "ab" * 10
FILM, SOUND = (
    replace(ASSET, pixels=ASSET.id, width=1, height=1, media_type=kind) for kind in ("video/mp4", "audio/wav")
)
DATA_URI = "data:image/png;base64,iVBORw0KGgo="


@dataclass(slots=True, kw_only=True)
class Called:
    """
    A call that was answered, and what the door wanted of the relay meanwhile.
    """

    reply: DoorReply
    wishes: list[Wish]

    @property
    def json(self) -> Any:
        """
        The answer's JSON.
        """
        assert isinstance(self.reply, JsonReply), f"the answer is a file: {self.reply}"
        return self.reply.value


def view_of(state: State, *, task: Task | None = None, **seen: Any) -> View:
    """
    A task brought to that state, as a door is shown it; `working` for a running one that is worked on.
    """
    working, standing = seen.pop("working", False), seen.pop("standing", Standing())
    one = task or make_task()
    one = moved(one, *events_to(state, one))
    if state is State.RUNNING:
        one = replace(one, remote_state=RemoteState.WORKING if working else RemoteState.WAITING)
    files = (f"http://127.0.0.1:61000/file/{one.id}/0/{'0' * 64}.mp4",) if state is State.DONE else ()
    return View(task=one, standing=standing, **{"files": files, **seen})


def call_door(
    door: Door,
    method: str,
    path: str,
    body: Any = None,
    *,
    grant: Callable[[Wish], Any] | None = None,
    query: Mapping[str, str | Sequence[str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Called:
    """
    Call a door; the path may end in a query. `grant` says what comes of each wish (an error that it raises is thrown
    into the door); without it a create is answered with a queued task of those parameters, a page with nothing, a
    picture with `ASSET`.

    Raises:
        VidrelayError: The door refuses the call.
        AssertionError: No route fits.
    """
    wishes: list[Wish] = []
    path, _, told = path.partition("?")
    queries: dict[str, str | Sequence[str]] = {**parse_qs(told), **(query or {})}
    asked = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in queries.items()}
    given = DoorCall(
        method=method,
        path=path,
        base=BASE,
        fresh=FRESH,
        body=body,
        query={name: values[0] for name, values in asked.items()},
        queries=asked,
        headers=headers or {},
    )
    for route in door.routes:
        found = compile_path(route.path)[0].match(path)
        if found is None or route.method != method:
            continue
        answering, sent, thrown = route.handler(replace(given, params=found.groupdict())), None, None
        while True:
            try:
                wish = answering.send(sent) if thrown is None else answering.throw(thrown)
            except StopIteration as end:
                return Called(reply=end.value, wishes=wishes)
            wishes.append(wish)
            sent = thrown = None
            try:
                sent = (grant or usual)(wish)
            except VidrelayError as error:
                thrown = error
    raise AssertionError(f"the door has no route for {method} {path}")


def usual(wish: Wish) -> Any:
    """
    What comes of a wish where a test says nothing else.
    """
    match wish:
        case Submit():
            prepared = wish.new.prepared
            task = make_task(
                request=Request(prompt=wish.new.prompt, model_version=prepared.model),
                parameters=stored(prepared.parameters),
                model_version=prepared.model,
            )
            return view_of(State.QUEUED, task=task)
        case Page() | Live():
            return []
        case Keep():
            return ASSET
    return view_of(State.RUNNING)


def stored(value: Any, asset: Asset = ASSET) -> Any:
    """
    Parameters as the server stores them, every picture, film and sound being that asset.
    """
    match value:
        case Inlined() | Part() | Kept():
            return {**value.beside, **asset_parameter(asset)}
        case Mapping():
            return {name: stored(inner, asset) for name, inner in value.items()}
        case list() | tuple():
            return [stored(inner, asset) for inner in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """
    A create call, and the request in the contract's words that asks for the same (None: it cannot be said in them).

    `same` is without its reference where `picture` tells the role that the call's one picture has.
    """

    path: str
    body: Any
    same: Request | None = None
    picture: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSheet:
    """
    What is a provider's own.

    Args:
        door: The door.
        adapter: Its adapter, which must make the same of the same wish.
        creates: Create calls, the first of which is a plain one from text.
        status: The path of a status read, with `{id}` in it.
        word: Takes the status word out of a status answer.
        words: The word of each phase that the SDK knows, as its own source or the fact sheet has it.
        content: The path that gives a result's bytes, with `{id}` in it; None where answers hold an address.
        address: The path whose answer holds a result's address, with `{id}` in it; None where a status answer does.
        media: Create calls that bring a film or a sound as bytes, each with `FILM` or `SOUND`, and how the adapter
            sends it: a data URI or base64 (`Inline`), a file of a form (`FormFile`), or what stands for an upload
            (None).
        unknown: A place in a create's body where a parameter that nobody knows is put, as a path of names.
    """

    door: Door
    adapter: Adapter
    creates: Sequence[Create]
    status: str
    word: Callable[[Any], Any]
    words: Mapping[Phase, Any]
    content: str | None = None
    address: str | None = None
    media: Sequence[tuple[Create, Asset, Inline | FormFile | None]] = ()
    unknown: Sequence[str] = ()


class DoorContract:
    """
    Inherit it as `class TestXDoor(DoorContract)` and give `sheet`.
    """

    sheet: ClassVar[DoorSheet]

    def _new(self, create: Create, body: Any = None) -> NewTask:
        called = call_door(
            self.sheet.door, "POST", create.path, create.body if body is None else body, headers=create.headers
        )
        made = [wish for wish in called.wishes if isinstance(wish, Submit)]
        assert len(made) == 1
        return made[0].new

    def _fingerprint(self, prepared: Prepared) -> str:
        traits = self.sheet.adapter.traits
        return fingerprint(
            account="main",
            provider="any",
            parameters=stored(prepared.parameters),
            pictures={ASSET.id: ASSET.pixels},
            irrelevant=traits.irrelevant,
            prompts=traits.prompts,
        )

    def test_a_create_makes_one_task_and_is_answered(self) -> None:
        """Every create call makes exactly one task, and its answer names the task's id somewhere."""
        for create in self.sheet.creates:
            called = call_door(self.sheet.door, "POST", create.path, create.body, headers=create.headers)
            assert sum(isinstance(wish, Submit) for wish in called.wishes) == 1
            assert 200 <= called.reply.status < 300 if isinstance(called.reply, JsonReply) else False
            assert "task-" in str(called.json)

    def test_the_native_api_asks_for_the_same(self) -> None:
        """The same wish through the door and through `/generate` has one model, one fingerprint and one length."""
        compared = 0
        for create in self.sheet.creates:
            if create.same is None:
                continue
            request, assets = create.same, {}
            if create.picture is not None:
                request = replace(request, references=(Reference(asset=ASSET.id, role=create.picture),))
                assets = {ASSET.id: ASSET}
            native, new = self.sheet.adapter.prepare(request, assets), self._new(create)
            told = f"{stored(new.prepared.parameters)} is not {native.parameters}"
            assert self._fingerprint(new.prepared) == self._fingerprint(native), told
            assert (new.prepared.model, new.prepared.seconds) == (native.model, native.seconds)
            assert new.prompt == request.prompt
            compared += 1
        assert compared, "no create call is compared with the native API"

    def test_a_task_of_the_door_is_what_its_adapter_sends(self) -> None:
        """The adapter can make its create call of what the door read, and marks it as the one that costs money."""
        for create in self.sheet.creates:
            new = self._new(create)
            task = make_task(parameters=_uploaded(stored(new.prepared.parameters)), model_version=new.prepared.model)
            request = next(self.sheet.adapter.submit(moved(task, *events_to(State.SUBMITTING, task))))
            assert request.creates

    def test_a_film_or_a_sound_goes_on_as_the_provider_takes_it(self) -> None:
        """Where the provider takes one as bytes, it is taken out of the call and sent on in the provider's way."""
        takes = self.sheet.adapter.traits.media
        assert bool(takes) == bool(self.sheet.media), f"the provider takes {sorted(takes)}, and no create has any"
        for create, asset, sent in self.sheet.media:
            assert family_of(asset.media_type) in takes
            parameters = stored(self._new(create).prepared.parameters, asset)
            task = make_task(parameters=_uploaded(parameters) if sent is None else parameters)
            request = next(self.sheet.adapter.submit(moved(task, *events_to(State.SUBMITTING, task))))
            body = request.body
            if isinstance(sent, FormFile):
                assert isinstance(body, Form)
                assert body.files == (sent,)
            elif sent is None:
                assert COPY in str(body)
            else:
                assert isinstance(body, Json)
                assert list(_inlines(body.value)) == [sent]

    def test_only_words_that_the_sdk_knows_appear(self) -> None:
        """Each phase has its word; what is uncertain reads as under way, and as failed once it is stale."""
        views = {
            Phase.WAITING: [view_of(State.QUEUED), view_of(State.SUBMITTING), view_of(State.UNCERTAIN)],
            Phase.WORKING: [view_of(State.RUNNING, working=True), view_of(State.DOWNLOADING)],
            Phase.DONE: [view_of(State.DONE)],
            Phase.FAILED: [view_of(State.FAILED), view_of(State.UNCERTAIN, stale=True)],
            Phase.CANCELLED: [view_of(State.CANCELLED)],
            Phase.EXPIRED: [view_of(State.EXPIRED)],
        }
        for phase, shown in views.items():
            for plain in shown:
                view = replace(plain, task=self._of_this_door(plain.task))
                called = call_door(
                    self.sheet.door,
                    "GET",
                    self.sheet.status.format(id=view.task.id),
                    grant=_always(view),
                )
                assert self.sheet.word(called.json) == self.sheet.words[phase], f"{phase} reads {called.json}"

    def _of_this_door(self, task: Task) -> Task:
        new = self._new(self.sheet.creates[0])
        return replace(task, parameters=stored(new.prepared.parameters), model_version=new.prepared.model)

    def test_a_result_is_this_relays(self) -> None:
        """The clip is given by this relay: as a file, or by an address of its own in the answer."""
        view = view_of(State.DONE)
        view = replace(view, task=self._of_this_door(view.task))
        path = self.sheet.content or self.sheet.address or self.sheet.status
        called = call_door(self.sheet.door, "GET", path.format(id=view.task.id), grant=_always(view))
        if self.sheet.content is not None:
            assert isinstance(called.reply, FileReply)
            assert (called.reply.task_id, called.reply.index) == (view.task.id, 0)
        else:
            assert view.files[0] in str(called.json)

    def test_a_clip_that_was_deleted_is_not_there_for_any_call(self) -> None:
        """Where clips can be deleted, their bytes and another delete are a 404 afterwards."""
        deletes = [route.path for route in self.sheet.door.routes if route.method == "DELETE"]
        view = view_of(State.DONE, gone=True)
        calls = [("DELETE", path.format(id=view.task.id, version="v1")) for path in deletes]
        if deletes and self.sheet.content is not None:
            calls.append(("GET", self.sheet.content.format(id=view.task.id)))
        for method, path in calls:
            with pytest.raises(UnknownTask):
                call_door(self.sheet.door, method, path, grant=_always(view))

    @pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422, 429, 500, 502, 503, 507])
    def test_an_error_keeps_its_status_and_words(self, status: int) -> None:
        """Whatever goes wrong is told in the provider's shape, with the text that tells a person why."""
        problem = Problem(code="some_code", title="Some title", detail="what went wrong here", status=status)
        call = DoorCall(method="POST", path=self.sheet.creates[0].path, base=BASE)
        reply = self.sheet.door.write_error(problem, call)
        assert "what went wrong here" in str(reply.value)
        assert reply.status == status

    def test_another_version_can_be_asked_for_in_the_body(self) -> None:
        """`vidrelay_force` in the body forces, and is not sent on."""
        create = self.sheet.creates[0]
        body: Any
        if isinstance(create.body, FormBody):
            body = replace(create.body, fields=(*create.body.fields, ("vidrelay_force", "true")))
        else:
            body = {**create.body, "vidrelay_force": True}
        new = self._new(create, body)
        assert new.force
        assert not self._new(create).force
        assert "vidrelay_force" not in str(new.prepared.parameters)

    def test_a_parameter_that_nobody_knows_is_passed_on(self) -> None:
        """It stands in the task's parameters as it came."""
        create = self.sheet.creates[0]
        if isinstance(create.body, FormBody):
            fields = (*create.body.fields, ("some_new_parameter", "7"))
            new = self._new(create, replace(create.body, fields=fields))
        else:
            new = self._new(create, _with(create.body, self.sheet.unknown, "some_new_parameter", 7))
        assert "some_new_parameter" in str(new.prepared.parameters)


def _always(view: View) -> Callable[[Wish], View]:
    return lambda _: view


def _with(body: Any, path: Sequence[str], name: str, value: Any) -> Any:
    if not path:
        return {**body, name: value}
    return {**body, path[0]: _with(body.get(path[0], {}), path[1:], name, value)}


def _inlines(value: Any) -> Iterator[Inline]:
    if isinstance(value, Inline):
        yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for one in inner:
        yield from _inlines(one)


def _uploaded(value: Any) -> Any:
    """
    Parameters as `submit` is given them where pictures are uploaded first.
    """
    match value:
        case {"$asset": _}:
            return {**value, "$copy": COPY}
        case Mapping():
            return {name: _uploaded(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_uploaded(inner) for inner in value]
    return value
