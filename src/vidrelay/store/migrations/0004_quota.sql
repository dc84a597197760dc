-- What a provider says that an account may still spend.
CREATE TABLE told_quotas (
    account TEXT PRIMARY KEY,
    left REAL NOT NULL,
    unit TEXT NOT NULL,
    resets_at INTEGER,
    told_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
