-- One row per entry of the audit log, with the records that it names as keys of one inverted index. A
-- page of 20 records cost 20 rows and 40 entries of indexes before. Rows of earlier releases, one per
-- record, stay until their retention ends.

ALTER TABLE audit
  ADD COLUMN records bytea[],  -- the first 16 bytes of SHA-256 of each record; NULL if the entry names none
  ALTER COLUMN entity SET DEFAULT '',
  ALTER COLUMN n SET DEFAULT 0;
-- The pending list is short, because whoever fills it waits until it is merged.
CREATE INDEX audit_records ON audit USING gin (records) WITH (gin_pending_list_limit = 1024);

---- create above / drop below ----

DROP INDEX audit_records;
ALTER TABLE audit DROP COLUMN records, ALTER COLUMN entity DROP DEFAULT, ALTER COLUMN n DROP DEFAULT;
