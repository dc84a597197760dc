"""
The kill points of a relay, and the event at a port that stands for each.

A point is passed each time the event comes; a relay told to die at its n-th time is dead at exactly that instant. What
comes before the directory's lock is taken, or is about the beacon file and the token, belongs to the process and is
tried with real ones (`PROCESS_ONLY`).
"""

from collections.abc import Mapping

# The paid way of a task, in the order of its life.
POINTS: Mapping[str, str] = {
    "k1": "add.enter",  # accept: before the transaction
    "k2": "add.commit",  # inserted, and about to be committed
    "k3": "add.left",  # committed
    "k4": "answer.half",  # the answer is on its way to the app
    "k5": "answer.told",  # the app has it
    "k6": "take_place.enter",  # submit: picked
    "k7": "create.connected",  # TLS is up (after the intent: the connection is opened by the call)
    "k8": "take_place.commit",  # before the intent's commit
    "k9": "take_place.left",  # after it
    "k10": "create.header",  # the header is out
    "k11": "create.half",  # half of the body
    "k12": "create.body",  # the whole body
    "k13": "create.status",  # the answer's status has come
    "k14": "create.read",  # and its body
    "k15": "save.Accepted.enter",  # the answer is understood
    "k16": "save.Accepted.commit",  # before the commit of the id
    "k17": "save.Accepted.left",  # after it
    "k18": "poll.enter",
    "k19": "poll.read",
    "k20": "save.Ready.left",
    "k21": "part.made",  # download: the file exists under its other name
    "k22": "part.written",
    "k23": "part.commit.enter",  # before the sync
    "k24": "part.rename",  # after it, before the rename
    "k25": "part.renamed",  # before the directory's sync
    "k26": "part.commit.left",  # after it
    "k27": "save.Saved.commit",  # before the commit of the index
    "k28": "save.Saved.left",  # after it
    "k29": "save.CancelRequested.left",  # cancel: the wish is kept
    "k30": "cancel.read",  # the provider has stopped it
    "k31": "save.Cancelled.left",
    "k32": "forget.enter",  # evict: chosen
    "k33": "delete.left",  # its files are gone
    "k34": "forget.left",  # its row is gone (which comes first)
    "k39": "database.rename",  # start: the database is made, not yet under its name
    "k40": "start.live",  # in the middle of taking up what was left
    "k41": "stop.enter",
}

PROCESS_ONLY = ("k35", "k36", "k37", "k38", "k42")
"""Lock, port, the beacon's two moments and the token's rotation: tests/kill kills real processes there."""
