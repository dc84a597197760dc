"""
Two spellings of one wish share a fingerprint; two wishes never do (contract section 4).
"""

import json
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.fingerprint import canonical, fingerprint, normalise_prompt

PIXELS = "p1:1024x768:" + "a" * 64
PICTURES = {"sha256:original": PIXELS, "sha256:stripped": PIXELS, "sha256:other": "p1:1024x768:" + "b" * 64}


def canon(
    parameters: Any,
    *,
    account: str = "main",
    provider: str = "openai",
    pictures: Mapping[str, str] = PICTURES,
    irrelevant: frozenset[str] = frozenset({"client_id", "callback_url"}),
    prompts: frozenset[str] = frozenset({"prompt", "negative_prompt"}),
) -> str:
    return canonical(
        account=account,
        provider=provider,
        parameters=parameters,
        pictures=pictures,
        irrelevant=irrelevant,
        prompts=prompts,
    )


def same(one: Any, other: Any) -> bool:
    return canon(one) == canon(other)


# The hash -------------------------------------------------------------------------------------------------------------


def print_of(parameters: dict[str, Any], **changes: Any) -> str:
    said = {"account": "main", "provider": "openai", "pictures": {}, "irrelevant": frozenset(), "prompts": frozenset()}
    return fingerprint(**{**said, "parameters": parameters, **changes})


def test_the_hash_is_what_it_was_when_results_were_kept_under_it() -> None:
    """
    If this fails, every result in every cache is lost: raise VERSION, and say so in the changelog.
    """
    assert (
        print_of({"prompt": "a cat", "seconds": 5})
        == "1a2a67a1fa4880d9500451832c7867b5982d6496bbe74d90a353ed5bec90a2b7"
    )


def test_another_account_or_provider_is_another_request() -> None:
    """
    The same parameters for another account or another provider have another fingerprint.
    """
    prints = {print_of({}), print_of({}, account="spare"), print_of({}, provider="fal")}
    assert len(prints) == 3


def test_the_canonical_form_can_be_read() -> None:
    """
    The canonical form is compact JSON with sorted names, plain numbers and readable text.
    """
    assert canon({"seconds": 5.0, "prompt": "一只　猫"}) == (
        '{"account":"main","parameters":{"prompt":"一只 猫","seconds":5},"provider":"openai"}'
    )


# Values ---------------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(texts, values, max_size=5)


def respelled(value: Any) -> Any:
    """
    The same JSON value in another spelling: members in reverse, whole numbers as floats, nulls said.
    """
    match value:
        case dict():
            turned = {name: respelled(inner) for name, inner in reversed(value.items())}
            return {**turned, "nobody knows this name": None}
        case list():
            return [respelled(item) for item in value]
        case bool():
            return value
        case int() if abs(value) < 2**53:
            return float(value)
        case _:
            return value


@given(objects)
def test_order_number_spelling_and_nulls_do_not_count(parameters: dict[str, Any]) -> None:
    """
    Members in another order, whole numbers as floats and added nulls leave the form as it was.
    """
    assert same(parameters, respelled(parameters))


@given(objects)
def test_a_trip_through_json_does_not_count(parameters: dict[str, Any]) -> None:
    """
    Parameters that were written as JSON and read again have the same form.
    """
    assert same(parameters, json.loads(json.dumps(parameters)))


@given(objects)
def test_the_canonical_form_is_its_own(parameters: dict[str, Any]) -> None:
    """
    The canonical form of a canonical form is that form itself.
    """
    form = json.loads(canon(parameters, prompts=frozenset()))
    assume("$picture" not in json.dumps(parameters))
    assert json.loads(canon(form["parameters"], prompts=frozenset())) == form


def meaning(value: Any) -> Any:
    """
    What a JSON value says, by which two requests that are not the same can be told.
    """
    match value:
        case dict():
            return "object", frozenset((name, meaning(inner)) for name, inner in value.items() if inner is not None)
        case list():
            return "list", tuple(meaning(item) for item in value)
        case bool() | None:
            return "word", value
        case int() | float():
            return "number", Fraction(value)
        case _:
            return "text", value


@given(objects, objects)
@example({"a": 1}, {"a": True})
@example({"a": 0}, {"a": False})
@example({"a": "5"}, {"a": 5})
@example({"a": ""}, {})
@example({"a": []}, {"a": [None]})
@example({"a": {"b": 1}}, {"a.b": 1})
@example({"seed": 2**53}, {"seed": 2**53 + 1})
@example({"a": 0.1}, {"a": 0.1 + 2**-56})
@example({"a": "é"}, {"a": "é"})
@example({"a": " x"}, {"a": "x"})
def test_two_different_requests_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    """
    Two sets of parameters share a form exactly when they say the same JSON values.
    """
    forms = [canon(parameters, prompts=frozenset(), irrelevant=frozenset()) for parameters in (one, other)]
    assert (forms[0] == forms[1]) == (meaning(one) == meaning(other))


@pytest.mark.parametrize(
    ("spellings"),
    [
        [5, 5.0, 5e0],
        [0, 0.0, -0.0],
        [10**21, 1e21],
        [0.1, 1e-1],
        [2**60, float(2**60)],
    ],
)
def test_a_number_has_one_spelling(spellings: list[float]) -> None:
    """
    Integer, float and exponent spellings of one number have one form.
    """
    assert len({canon({"n": number}) for number in spellings}) == 1


@given(st.integers(-(10**400), 10**400))
def test_an_integer_is_exact_however_big(number: int) -> None:
    """
    Integers of hundreds of digits are written with every digit.
    """
    assert f'"n":{number}}}' in canon({"n": number})


@pytest.mark.parametrize(
    "number",
    [float("nan"), float("inf"), float("-inf"), 10**4300, -(10**4300)],
    ids=["nan", "inf", "-inf", "long", "-long"],
)
def test_what_is_no_finite_number_of_bearable_length_is_refused(number: float) -> None:
    """
    NaN, the infinities and endless integers are refused by the parameter's path.
    """
    with pytest.raises(InvalidRequest) as refused:
        canon({"extra": {"n": [number]}})
    assert refused.value.field == "extra.n"


@pytest.mark.parametrize("parameters", [{"a": "\ud800"}, {"a": ["x\udfff"]}, {"\ud800": 1}, {"a": {"\udfff": None}}])
def test_half_a_surrogate_pair_is_refused(parameters: dict[str, Any]) -> None:
    """
    A lone surrogate in a value or in a name, also one whose value is null, is refused.
    """
    with pytest.raises(InvalidRequest, match="surrogate"):
        canon(parameters)


@pytest.mark.parametrize("name", ["account", "provider"])
def test_half_a_surrogate_pair_in_a_name_is_refused(name: str) -> None:
    """
    A lone surrogate in the account or the provider is refused by that name.
    """
    with pytest.raises(InvalidRequest, match=name):
        canon({}, **{name: "\ud800"})


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), {1: "a number for a name"}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    """
    Bytes, sets, objects and names that are no text are refused by the parameter's path.
    """
    with pytest.raises(InvalidRequest) as refused:
        canon({"extra": value})
    assert refused.value.field == "extra"


def test_a_tuple_is_a_list() -> None:
    """
    A tuple and a list of the same items have one form.
    """
    assert same({"a": (1, 2)}, {"a": [1, 2]})


def test_a_value_nested_too_deep_is_refused() -> None:
    """
    A value a hundred thousand lists deep is refused with the limit, and exhausts no stack.
    """
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="64 deep"):
        canon({"a": deep})


# Names ----------------------------------------------------------------------------------------------------------------


@given(
    objects,
    texts.filter(lambda name: name not in ("client_id", "callback_url")),
    values.filter(lambda v: v is not None),
)
@settings(max_examples=40)
def test_an_unknown_parameter_counts(parameters: dict[str, Any], name: str, value: Any) -> None:
    """
    A parameter nobody knows, with a value, makes another request.
    """
    assume(name not in parameters)
    assert not same(parameters, {**parameters, name: value})


@given(objects, st.sampled_from(["client_id", "callback_url"]), values)
@settings(max_examples=40)
def test_an_irrelevant_parameter_does_not_count(parameters: dict[str, Any], name: str, value: Any) -> None:
    """
    What an adapter calls irrelevant may take any value without making another request.
    """
    assert same(parameters, {**parameters, name: value})


def test_an_irrelevant_name_inside_another_parameter_counts() -> None:
    """
    An irrelevant name is meant at the top only; further inside it counts.
    """
    assert not same({"input": {"client_id": "a"}}, {"input": {"client_id": "b"}})


def test_a_parameter_inside_another_can_be_named_by_its_path() -> None:
    """
    A dotted path names an inner parameter as prompt or as irrelevant.
    """
    forms = {
        canon(
            {"input": {"prompt": prompt, "tag": tag}},
            prompts=frozenset({"input.prompt"}),
            irrelevant=frozenset({"input.tag"}),
        )
        for prompt, tag in (("a cat", 1), (" a  cat", 2))
    }
    assert len(forms) == 1


# Pictures -------------------------------------------------------------------------------------------------------------


def picture(asset: str, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"$asset": asset, "mediaType": media_type, **more}


def test_copies_of_a_picture_that_look_the_same_are_the_same() -> None:
    """
    Two files with the same pixels are one picture, whatever their bytes and type.
    """
    one = {"images": [picture("sha256:original")]}
    assert same(one, {"images": [picture("sha256:stripped", "image/jpeg")]})
    assert not same(one, {"images": [picture("sha256:other")]})


def test_a_picture_counts_by_its_pixels() -> None:
    """
    In the canonical form a known picture stands as the identity of its pixels.
    """
    assert f'"image":{{"$picture":"{PIXELS}"}}' in canon({"image": picture("sha256:original")})


def test_what_is_said_of_a_picture_counts() -> None:
    """
    The same picture in another role makes another request.
    """
    first, last = (picture("sha256:original", role=role) for role in ("first", "last"))
    assert not same({"image": first}, {"image": last})


@pytest.mark.parametrize("asset", ["sha256:unknown", 7, None, ["sha256:original"]])
def test_an_unknown_picture_counts_literally(asset: Any) -> None:
    """
    A picture whose pixels are not known stays in the form as it was written, its type included.
    """
    form = json.loads(canon({"image": {"$asset": asset, "mediaType": "image/png"}}))
    assert form["parameters"]["image"]["mediaType"] == "image/png"


def test_the_type_of_an_unknown_picture_counts() -> None:
    """
    Two media types of an unknown picture make two requests.
    """
    assert not same({"image": picture("x", "image/png")}, {"image": picture("x", "image/jpeg")})


@pytest.mark.parametrize("name", ["$picture", "$$picture"])
def test_nothing_can_pass_for_a_picture(name: str) -> None:
    """
    A parameter spelled like the form of a picture is escaped, so that it never equals a real one.
    """
    genuine = {"image": picture("sha256:original")}
    assert not same(genuine, {"image": {name: PIXELS}})
    assert not same({"image": {"$picture": 1}}, {"image": {"$$picture": 1}})


# Typed text -----------------------------------------------------------------------------------------------------------

ZWSP, ZWNJ, ZWJ, BOM, VS15, VS16 = "\u200b", "\u200c", "\u200d", "\ufeff", "\ufe0e", "\ufe0f"
INVISIBLE = [
    ZWSP,
    ZWNJ,
    ZWJ,
    BOM,
    "\u2060",
    "\u00ad",
    "\u200e",
    "\u202e",
    "\u2066",
    "\u034f",
    "\u180e",
    VS16,
    "\U000e0041",
]
FAMILY = f"👨{ZWJ}👩{ZWJ}👧"
ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"

words = st.text(st.sampled_from("abcXYZ019,.!?éßж猫カ한①²Ω"), min_size=1, max_size=6)
prompts = st.lists(words, min_size=1, max_size=5)
SELECTORS_AND_MARKS = [VS15, "\ufe00", "\U000e0100", "\U000e007f", "\u20e3", "\u0301", "\u3099", "\u0338", "\u094d"]
BASES = list(" \u3000\n1#aeか葛←❤👨👩🏽🏴कषیاᠠ∈ＡＧｶﾞ｡￣！")
tangles = st.text(st.sampled_from([*INVISIBLE, *SELECTORS_AND_MARKS, *BASES]), max_size=12)


@given(prompts, st.data())
def test_white_space_does_not_count(words: list[str], data: st.DataObject) -> None:
    """
    Runs of any white space between words are one space, and those around the prompt are dropped.
    """
    gaps = st.text(st.sampled_from(" \t\r\n\u00a0\u2003\u2028\u202f\u3000"), min_size=1, max_size=3)
    noisy = data.draw(gaps) + "".join(word + data.draw(gaps) for word in words)
    assert normalise_prompt(noisy) == " ".join(normalise_prompt(word) for word in words)


@given(prompts, st.data())
def test_zero_width_characters_do_not_count(words: list[str], data: st.DataObject) -> None:
    """
    Invisible characters strewn among the letters of a prompt change nothing.
    """
    text = " ".join(words)
    noise = st.text(st.sampled_from(INVISIBLE), max_size=3)
    noisy = "".join(char + data.draw(noise) for char in text)
    assert normalise_prompt(noisy) == normalise_prompt(text)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1))
def test_full_width_forms_do_not_count(text: str) -> None:
    """
    Full-width letters, digits and signs are read as their plain ASCII forms.
    """
    assert normalise_prompt("".join(chr(ord(char) + 0xFEE0) for char in text)) == normalise_prompt(text) == text


@given(texts)
def test_composition_does_not_count(text: str) -> None:
    """
    A prompt composed and the same prompt decomposed normalise to one text.
    """
    assert normalise_prompt(unicodedata.normalize("NFD", text)) == normalise_prompt(unicodedata.normalize("NFC", text))


@given(tangles)
@settings(max_examples=500)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    """
    A tangle of joiners, selectors, marks and blanks is settled after one pass.
    """
    once = normalise_prompt(text)
    assert normalise_prompt(once) == once


@given(st.text())
def test_any_text_can_be_normalised(text: str) -> None:
    """
    Any text normalises without an error, is settled after one pass and has no blanks around it.
    """
    once = normalise_prompt(text)
    assert normalise_prompt(once) == once
    assert once == once.strip()


@pytest.mark.parametrize(
    "text",
    [
        FAMILY,
        f"👩🏽{ZWJ}💻",
        f"❤{VS16}{ZWJ}🔥",
        f"🏳{VS16}{ZWJ}🌈",
        f"❤{VS15}",
        f"1{VS16}\u20e3",
        "#\u20e3",
        ENGLAND,
        "🇨🇳",
        f"می{ZWNJ}خواهم",
        f"क्{ZWJ}ष",
        f"র{ZWJ}্য",
        "ᠠ\u180eᠠ",
        "葛\U000e0100",
        "≨\ufe00",
        "①②",
        "x² ½ ﬁ",
        "カ한",
        "",
    ],
)
def test_what_means_something_is_kept(text: str) -> None:
    """
    Joiners, selectors and tags that change what a reader sees stay, and so do compatibility letters.
    """
    assert normalise_prompt(text) == text


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("ｶﾞｷﾞ", "ガギ"),
        ("ｱ　ﾊﾟ", "ア パ"),
        ("￥１００￡", "¥100£"),
        ("e\u200b\u0301", "é"),
        ("e\u200d\u0301", "é"),
        (f"a{VS16}b", "ab"),
        (f"1{VS16}", "1"),
        (f"👨{ZWJ}", "👨"),
        (f"{ZWJ}👨", "👨"),
        (f"👨{ZWJ}{ZWJ}👩", f"👨{ZWJ}👩"),
        (f"👨{ZWSP}{ZWJ}👩", f"👨{ZWJ}👩"),
        (f"👨{ZWNJ}👩", "👨👩"),
        (f"❤{VS16}{VS16}", f"❤{VS16}"),
        (f"می{ZWNJ}{ZWNJ}خواهم", f"می{ZWNJ}خواهم"),
        (f"کتاب{ZWNJ} ها", "کتاب ها"),
        ("猫\ufe0f", "猫"),
        ("a\U000e0100", "a"),
        ("hidden\U000e0068\U000e0069\U000e007f", "hidden"),
        ("🏴\U000e0067\U000e0062", "🏴"),
        (f" {BOM} a cat {ZWSP} ", "a cat"),
    ],
)
def test_what_cannot_be_seen_is_dropped(typed: str, read: str) -> None:
    """
    Joiners, selectors and tags that show nothing where they stand are dropped.
    """
    assert normalise_prompt(typed) == read


def test_a_family_is_not_three_people() -> None:
    """
    A joined emoji and its parts side by side are two different prompts.
    """
    assert not same({"prompt": FAMILY}, {"prompt": "👨👩👧"})


def test_flags_differ_by_their_tags() -> None:
    """
    Two tagged flags and the plain one stay three different texts.
    """
    scotland = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    assert len({normalise_prompt(flag) for flag in (ENGLAND, scotland, "🏴")}) == 3


@pytest.mark.parametrize("name", ["prompt", "negative_prompt"])
def test_prompts_are_normalised(name: str) -> None:
    """
    Parameters that are named as prompts are compared by their normalised text.
    """
    assert same({name: "a cat"}, {name: " a\u200b  ｃat "})


def test_every_prompt_of_a_list_is_normalised() -> None:
    """
    Where a prompt parameter is a list, each text in it is normalised.
    """
    assert same({"prompt": ["a cat"]}, {"prompt": [" a  cat"]})


@given(texts, texts)
def test_other_texts_count_exactly(one: str, other: str) -> None:
    """
    Text parameters that are no prompts are the same only when they are equal.
    """
    assert same({"style": one}, {"style": other}) == (one == other)


def test_different_prompts_differ() -> None:
    """
    Prompts that differ in the case of one letter are different requests.
    """
    assert not same({"prompt": "a cat"}, {"prompt": "a Cat"})
