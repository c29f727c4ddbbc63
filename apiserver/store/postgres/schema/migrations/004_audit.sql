-- The audit log: who did what to which record, by day.

ALTER TABLE sites ADD COLUMN audit_retention int8 NOT NULL DEFAULT 7776000;  -- seconds that entries are kept

-- One row for each record of an entry, so that an index leads from a record to its entries; the first
-- row has the entry. Partitions are made and dropped by the servers.
CREATE TABLE audit (
  site    int   NOT NULL,
  at      int8  NOT NULL,  -- microseconds since 1970
  id      int8  NOT NULL,  -- random
  n       int4  NOT NULL,  -- 0 for the row with the entry
  entity  text  COLLATE "C" NOT NULL,  -- type/id in lower case, empty for none
  caller  text  COLLATE "C",
  action  text  COLLATE "C",
  outcome int2,
  interaction text COLLATE "C",
  entry   bytea,
  PRIMARY KEY (site, at, id, n)
) PARTITION BY RANGE (at);
CREATE INDEX audit_entity ON audit (site, entity, at, id) WHERE entity <> '';
CREATE INDEX audit_caller ON audit (site, caller, at, id) WHERE n = 0;

---- create above / drop below ----

DROP TABLE audit;
ALTER TABLE sites DROP COLUMN audit_retention;
