"""
Films and sounds that came through a door: taken in as the account's provider takes them, told apart by their bytes, and
never a picture.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from vidrelay.core.adapter import Prepared, asset_parameter
from vidrelay.core.errors import InvalidRequest, TooLarge
from vidrelay.core.ports import How
from vidrelay.core.task import Asset, Reference, Request, State
from vidrelay.testing.toy.adapter import ToyAdapter

FILM = Asset(id="sha256:1", pixels="sha256:1", width=1, height=1, size_bytes=99, media_type="video/mp4")
OTHER = replace(FILM, id="sha256:2", pixels="sha256:2")


def taking(bench, **media):
    """The provider takes such media as bytes."""
    bench.adapter.traits = replace(bench.adapter.traits, media=media)


async def submit(bench, film):
    """As a door submits it."""
    prepared = Prepared(model=None, parameters={"prompt": "a boat", "pictures": [asset_parameter(film)]})
    return await bench.relay.submit_prepared(Request(prompt="a boat"), prepared, {film.id: film})


async def test_a_film_is_told_apart_by_its_bytes(bench):
    """The same film again is a twin; another one is another task."""
    async with bench.running():
        first = await submit(bench, FILM)
        again, another = await submit(bench, FILM), await submit(bench, OTHER)
    assert (again.how, again.task.id) == (How.JOINED, first.task.id)
    assert another.how is How.CREATED


async def test_a_film_that_was_kept_before_goes_to_who_takes_it(bench):
    """A later create may name it at another door, whose provider takes none, or not so long ones."""
    async with bench.running():
        with pytest.raises(InvalidRequest, match="toy takes no film as bytes"):
            await bench.relay.fitted(FILM, account="toy")
        taking(bench, video=98)
        with pytest.raises(TooLarge, match="at most 98 bytes"):
            await bench.relay.fitted(FILM, account="toy")
        taking(bench, video=99)
        assert await bench.relay.fitted(FILM, account="toy") == FILM


async def test_a_reference_is_a_picture(bench):
    """The native API's references are pictures, also where the provider takes films and this one is here."""
    taking(bench, video=99)
    async with bench.running():
        await bench.store.add_asset(FILM)
        with pytest.raises(InvalidRequest, match="no picture") as told:
            await bench.submit(references=(Reference(asset=FILM.id),))
        assert await bench.store.live() == []
    assert told.value.field == "references"


async def test_a_film_is_uploaded_once_where_there_is_an_upload(bench):
    """It is kept while its task needs it, and the create names what stands for it, after a restart too."""
    bench.adapter = ToyAdapter(copies=timedelta(hours=10))
    taking(bench, video=99)
    async with bench.running():
        await bench.store.add_asset(FILM)
        first = await submit(bench, FILM)
        await bench.until(first.task.id, State.DONE)
    async with bench.running():
        prepared = Prepared(model=None, parameters={"prompt": "a fox", "pictures": [asset_parameter(FILM)]})
        await bench.relay.submit_prepared(Request(prompt="a fox"), prepared, {FILM.id: FILM})
        await bench.clock.settle()
    assert bench.provider.uploads == [FILM.id]
    assert [create["pictures"][0]["$copy"] for create in bench.provider.creates] == ["copy-1"] * 2
