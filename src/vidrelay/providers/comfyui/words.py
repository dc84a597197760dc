"""
ComfyUI's words, said once.
"""

from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="ComfyUI",
    takes="whatever the graph does; the prompt, numbers and pictures go where it is marked",
    pictures="uploaded to its input folder; 100 MB each",
    limits="none: one job at a time, the rest wait; a window of 1 unless the account says more",
    lost="looked up by our own id; absence is believed where a restart cannot have erased it",
    cancel="while it waits; at work, at the next step between two nodes",
    results="as long as the file lies there",
    verified="its source and a run of 0.3.64, in the fact sheet of 30 November 2026; no official SDK",
)

RESULTS = StatusWords("comfyui", {"success": Standing.DONE, "error": Standing.FAILED})
CODES: Codes = dict.fromkeys(
    (
        *("no_prompt", "invalid_prompt", "missing_node_type", "prompt_no_outputs"),
        *("prompt_outputs_failed_validation", "invalid_prompt_id"),
    ),
    Meaning.REJECTED,
)


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"type", "message", "details"}, "node_errors": {…}}`.
    """
    whole: dict[str, Any] = read_object(reply) or {}
    inner = whole.get("error")
    data: dict[str, Any] = inner if isinstance(inner, dict) else {"message": inner}
    parts = [text_of(data, "message"), text_of(data, "details"), *_node_errors(whole.get("node_errors"))]
    detail = "; ".join(dict.fromkeys(part for part in parts if part))
    return said(reply, CODES, code=text_of(data, "type"), detail=detail or None, secret=key)


def _node_errors(told_of: Any) -> list[str]:
    found = []
    for name, node in told_of.items() if isinstance(told_of, dict) else ():
        listed = node.get("errors") if isinstance(node, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict):
                what = [text_of(one, "message"), text_of(one, "details")]
                found.append(f"node {name} ({node.get('class_type')}): " + ", ".join(part for part in what if part))
    return found[:5]
