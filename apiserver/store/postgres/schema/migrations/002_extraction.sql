-- How far the records of a site are indexed as a later release does it.

ALTER TABLE sites
  ADD COLUMN extraction int8 NOT NULL DEFAULT 0,  -- version of the extraction that all its records are indexed by
  ADD COLUMN reindexing int8 NOT NULL DEFAULT 0,  -- version they are being indexed by, where that is another
  ADD COLUMN reindexed_type text COLLATE "C" NOT NULL DEFAULT '',  -- the last record that is
  ADD COLUMN reindexed_id text COLLATE "C" NOT NULL DEFAULT '';

---- create above / drop below ----

ALTER TABLE sites DROP COLUMN extraction, DROP COLUMN reindexing, DROP COLUMN reindexed_type, DROP COLUMN reindexed_id;
