"""
Draw the state diagram in states.md from the table in the code: `python docs/reference/draw_states.py`.
"""

import re
from pathlib import Path

from vidrelay.core.lifecycle import TRANSITIONS
from vidrelay.core.task import ENDED, State

PAGE = Path(__file__).with_name("states.md")
_DIAGRAM = re.compile("(?<=```mermaid\n).*?(?=```)", re.DOTALL)


def diagram() -> str:
    """
    The table as a mermaid state diagram: one arrow for each pair of states, with the events that take it.
    """
    lines = ["stateDiagram-v2", f"    [*] --> {State.QUEUED}"]
    for state, steps in TRANSITIONS.items():
        for following in State:
            events = [event.__name__ for event, reached in steps.items() if reached is following]
            if events:
                lines.append(f"    {state} --> {following}: {', '.join(events)}")
    lines += [f"    {state} --> [*]" for state in State if state in ENDED]
    return "\n".join(lines) + "\n"


def drawn(page: str) -> str:
    """
    The page with its diagram as the table is now.
    """
    return _DIAGRAM.sub(lambda _: diagram(), page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
