"""
Persistence of records: tasks and their event log, counters, accounts' pauses, reference images, and the cache's index.

`sqlite.py` fills the ports Store, AccountBook and ResultIndex; its statements stand in `sqlite.sql`, under names.
`changes.py` says what each change does inside a transaction, `reads.py` what is read, `writer.py` is the one thread
that commits, in groups. `rows.py` turns rows into records, `migrate.py` makes, checks and renews the database file.
May import core and the standard library.
"""
