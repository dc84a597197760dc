-- When a pause began, so that its length is known to a life of the relay whose clock is set otherwise.
ALTER TABLE pauses ADD COLUMN began_at INTEGER;
