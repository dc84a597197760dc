"""
Makes of an upload policy the form that stores a picture in the bucket that the policy names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vidrelay.core.messages import Form, FormFile
from vidrelay.providers.pictures import filename_of
from vidrelay.providers.replies import text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    Where a picture goes: the address, the form, and what stands for the picture afterwards.
    """

    host: str
    form: Form
    reference: str


def placed(policy: Mapping[str, Any], picture: Mapping[str, str]) -> Place | None:
    """
    Read the policy; None where it names no place.
    """
    host, folder = text_of(policy, "upload_host"), text_of(policy, "upload_dir")
    if not host or not folder:
        return None
    kind = picture.get("mediaType", "image/png")
    name = filename_of(picture, stem=picture["$asset"].rpartition(":")[2][:40])
    fields = {
        "OSSAccessKeyId": text_of(policy, "oss_access_key_id"),
        "Signature": text_of(policy, "signature"),
        "policy": text_of(policy, "policy"),
        "key": f"{folder}/{name}",
        "x-oss-object-acl": text_of(policy, "x_oss_object_acl"),
        "x-oss-forbid-overwrite": text_of(policy, "x_oss_forbid_overwrite"),
        "success_action_status": "200",
        "x-oss-content-type": kind,
    }
    return Place(
        host=host,
        form=Form(
            fields=tuple((one, value) for one, value in fields.items() if value is not None),
            files=(FormFile(name="file", asset=picture["$asset"], filename=name, media_type=kind),),
        ),
        reference=f"oss://{folder}/{name}",
    )
