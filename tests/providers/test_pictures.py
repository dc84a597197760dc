"""
A request's pictures: which go together, and how one goes into a form.
"""

import pytest

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Reference, Request
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, form_file, pictures


@pytest.mark.parametrize(
    ("roles", "rules"),
    [((LAST,), {"last_alone": False}), ((FIRST, REFERENCE), {"mixed": False}), ((LAST, REFERENCE), {"mixed": False})],
)
def test_pictures_that_do_not_go_together_are_refused(roles: tuple[str, ...], rules: dict[str, bool]) -> None:
    """Only where the provider has that rule; the refusal names the references."""
    references = tuple(Reference(url="https://x.example/1.png", role=role) for role in roles)
    request = Request(prompt="a boat", references=references)
    pictures(request, {}, who="X", roles=(FIRST, LAST, REFERENCE), max_others=1)
    with pytest.raises(InvalidRequest) as refused:
        pictures(request, {}, who="X", roles=(FIRST, LAST, REFERENCE), max_others=1, **rules)
    assert refused.value.field == "references"


def test_a_picture_is_the_file_of_a_form() -> None:
    """Its name ends as its kind says."""
    file = form_file({"$asset": "sha256:1", "mediaType": "image/webp"}, name="content")
    assert (file.name, file.asset, file.filename) == ("content", "sha256:1", "picture.webp")
    assert file.media_type == "image/webp"
