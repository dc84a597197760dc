-- What providers hold and tell, so that a start need not ask or upload again.

-- The pictures that were uploaded to a provider: what stands for each in a create call.
CREATE TABLE remote_copies (
    account TEXT NOT NULL,
    asset TEXT NOT NULL,
    reference TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (account, asset)
) STRICT, WITHOUT ROWID;

-- How many tasks a provider says that an account may have, by window.
CREATE TABLE told_limits (
    account TEXT PRIMARY KEY,
    limits TEXT NOT NULL,
    told_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
