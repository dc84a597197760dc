"""
Vidu, held against its fact sheet and the pretend provider in its words.
"""

import json

from vidrelay.core.lifecycle import Accepted, Ready, StillRunning
from vidrelay.core.task import Reference
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.providers.vidu.adapter import make
from vidrelay.testing.adapters import AdapterContract, Sample, Sheet
from vidrelay.testing.rehearsal import PICTURE

FIELDS = {"duration": 5, "aspect_ratio": "16:9", "resolution": "720p", "seed": 7, "model_version": "viduq3-turbo"}


class TestVidu(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="vidu",
        make=make,
        path="/ent/v2",
        fields=FIELDS,
        picture={"duration": 5},
        words={
            "created": Standing.WAITING,
            "queueing": Standing.WAITING,
            "processing": Standing.WORKING,
            "success": Standing.DONE,
            "failed": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(
                (
                    *("BadRequest", "FieldLacking", "FieldUnwanted", "FieldInvalid", "FieldItemCountOutOfRange"),
                    *("PageSizeOutOfRange", "ImageFormatInvalid", "ModelUnavailable", "ImageDownloadFailure"),
                    *("Conflict", "Canceled"),
                ),
                Meaning.REJECTED,
            ),
            **dict.fromkeys(
                ("TaskPromptPolicyViolation", "AuditSubmitIllegal", "CreationPolicyViolation"), Meaning.MODERATED
            ),
            **dict.fromkeys(("OperationInProcess", "TooManyRequests", "SystemThrottling"), Meaning.RATE),
            **dict.fromkeys(("Unauthorized", "Forbidden"), Meaning.AUTH),
            "QuotaExceeded": Meaning.WINDOW,
            "CreditInsufficient": Meaning.BALANCE,
            "InternalServiceFailure": Meaning.AGAIN,
        },
        job_codes={
            "CreationPolicyViolation": Meaning.MODERATED,
            "UserCancelled": Meaning.CANCELLED,
            "InternalServiceFailure": Meaning.AGAIN,
        },
        refused=(({"negative_prompt": "x"}, "negativePrompt"), ({"duration": 99}, "duration")),
        samples=(
            Sample(
                of="submit",
                data={"task_id": "949913121705701376", "state": "created", "model": "viduq3-turbo", "prompt": "a cat"},
                outcome=Accepted,
            ),
            Sample(
                of="poll", data={"id": "9", "state": "queueing", "err_code": "", "creations": []}, outcome=StillRunning
            ),
            Sample(
                of="poll",
                data={"id": "9", "state": "success", "creations": [{"id": "c1", "url": "https://x.example/o.mp4"}]},
                outcome=Ready,
            ),
        ),
    )


async def test_a_payload_that_is_null_is_none():
    """SDKs send what was not set as null: our own key takes its place."""
    it = TestVidu.sheet.rehearse()
    task = it.task(**FIELDS, extra={"payload": None})
    await it.submitted(task)
    assert json.loads(it.requests[0].body)["payload"] == task.submission_key


async def test_the_kind_follows_from_the_pictures():
    """Text, a first frame, both frames, references: each has a call of its own."""
    it = TestVidu.sheet.rehearse()
    kinds = [
        it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in roles)).parameters["kind"]
        for roles in ((), ("first_frame",), ("first_frame", "last_frame"), ("reference", "reference"))
    ]
    assert kinds == ["text2video", "img2video", "start-end2video", "reference2video"]
