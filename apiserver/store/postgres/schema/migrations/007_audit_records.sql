-- One row per entry of the audit log, with the hashes of the records that it names in one inverted index. A
-- page of 20 records cost 20 rows and 40 entries of indexes before. Rows of earlier releases, one per
-- record, stay until their retention ends.

ALTER TABLE audit
  ADD COLUMN records int8[],  -- the hash of type and id of each record, as in the column self; NULL if there are none
  ALTER COLUMN entity SET DEFAULT '',
  ALTER COLUMN n SET DEFAULT 0;
CREATE INDEX audit_records ON audit USING gin (records);

---- create above / drop below ----

DROP INDEX audit_records;
ALTER TABLE audit DROP COLUMN records, ALTER COLUMN entity DROP DEFAULT, ALTER COLUMN n DROP DEFAULT;
