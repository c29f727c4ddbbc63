-- Texts in rows of half the size: ix_text finds records by a text, and a record's own texts are in its row.
-- Releases before server level 2 search ix_str. Both are written until all records have the new rows; then
-- schema.DropWideTexts drops ix_str, the triggers and the table unpacked.

ALTER TABLE sites ADD COLUMN layout int2 NOT NULL DEFAULT 0;  -- 1: all records have been seen with the new rows

-- Until then, a rollback to the release before is possible.
ALTER TABLE requirement ADD COLUMN texts_until timestamptz NOT NULL DEFAULT now() + interval '7 days';

ALTER TABLE res
  ADD COLUMN vals   bytea NOT NULL DEFAULT '',  -- the texts of the record (package indexrow)
  ADD COLUMN sig    int8  NOT NULL DEFAULT 0,   -- with sig2 and sig3, a Bloom filter of the beginnings of texts and of facets
  ADD COLUMN sig2   int8  NOT NULL DEFAULT 0,
  ADD COLUMN sig3   int8  NOT NULL DEFAULT 0,
  ADD COLUMN present int8 NOT NULL DEFAULT 0,   -- a bit for each parameter that has a value
  ADD COLUMN packed int4;                       -- low half of the ixsum that vals, present and the rows of ix_text were written with; NULL for tombstones

-- Nothing is planned by these values.
ALTER TABLE res ALTER vals SET STATISTICS 0;

CREATE TABLE ix_text (
  site   int4  NOT NULL,
  key    int4  NOT NULL,  -- short hash of type and parameter
  rid    int8  NOT NULL,
  facets int8  NOT NULL,
  val    bytea NOT NULL
);
-- Not unique: the rows of a record are made without duplicates, and removed by key and rid.
CREATE INDEX ix_text_val ON ix_text (site, key, val, rid, facets);
ALTER TABLE ix_text SET (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

-- How many records of a type a site has.
CREATE STATISTICS res_types (mcv) ON site, typ FROM res;

-- Records that an earlier release has written since, without the new rows.
CREATE TABLE unpacked (
  site int  NOT NULL,
  self int8 NOT NULL,
  PRIMARY KEY (site, self)
);

-- An earlier release changes a record: what is in ix_text no longer fits it.
CREATE FUNCTION unpack_texts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  rest bytea;
  at int;
  k int;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    rest := OLD.vals;
    LOOP
      at := position('\xff'::bytea IN rest);
      EXIT WHEN at = 0;
      k := ((get_byte(rest, at) & 63) << 18) + ((get_byte(rest, at + 1) & 63) << 12) + ((get_byte(rest, at + 2) & 63) << 6) + (get_byte(rest, at + 3) & 63);
      rest := substring(rest FROM at + 6);
      DELETE FROM ix_text x WHERE x.site = OLD.site AND x.key = k AND x.rid = OLD.rid
        AND x.val = substring(rest FROM 1 FOR LEAST(position('\xfe'::bytea IN rest) - 1, 1024));
    END LOOP;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN NULL;
  END IF;
  NEW.vals := '';
  NEW.sig := 0;
  NEW.sig2 := 0;
  NEW.sig3 := 0;
  NEW.present := 0;
  NEW.packed := NULL;
  IF NOT NEW.deleted THEN
    -- A deletion of a row that exists must wait for this transaction, so the row is locked.
    INSERT INTO unpacked VALUES (NEW.site, NEW.self) ON CONFLICT (site, self) DO UPDATE SET self = EXCLUDED.self;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER unpacked_insert BEFORE INSERT ON res FOR EACH ROW
  WHEN (NEW.packed IS NULL) EXECUTE FUNCTION unpack_texts();
CREATE TRIGGER unpacked_update BEFORE UPDATE ON res FOR EACH ROW
  WHEN (CASE WHEN NEW.deleted THEN NEW.vals <> '' OR NEW.present <> 0 ELSE NEW.packed IS DISTINCT FROM (NEW.ixsum & 2147483647)::int4 END) EXECUTE FUNCTION unpack_texts();
CREATE TRIGGER unpacked_delete AFTER DELETE ON res FOR EACH ROW
  WHEN (OLD.vals <> '') EXECUTE FUNCTION unpack_texts();

-- A database without sites has nothing to migrate.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM sites) THEN
    DROP TRIGGER unpacked_insert ON res;
    DROP TRIGGER unpacked_update ON res;
    DROP TRIGGER unpacked_delete ON res;
    DROP FUNCTION unpack_texts;
    DROP TABLE ix_str, unpacked;
    -- schema.DropWideTexts replaces this index where there are sites.
    ALTER TABLE res DROP CONSTRAINT res_site_typ_rid_deleted_key;
    CREATE UNIQUE INDEX res_created ON res (site, typ, rid) INCLUDE (deleted, sig, sig2, sig3, present);
    UPDATE requirement SET oldest_server = GREATEST(oldest_server, 2);
  END IF;
END $$;

---- create above / drop below ----

DROP INDEX IF EXISTS res_created;
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'res_site_typ_rid_deleted_key') THEN
    ALTER TABLE res ADD UNIQUE (site, typ, rid) INCLUDE (deleted);
  END IF;
END $$;

DROP TABLE IF EXISTS unpacked;
DROP TRIGGER IF EXISTS unpacked_insert ON res;
DROP TRIGGER IF EXISTS unpacked_update ON res;
DROP TRIGGER IF EXISTS unpacked_delete ON res;
DROP FUNCTION IF EXISTS unpack_texts;
DROP STATISTICS res_types;
DROP TABLE ix_text;
ALTER TABLE res DROP COLUMN vals, DROP COLUMN sig, DROP COLUMN sig2, DROP COLUMN sig3, DROP COLUMN present, DROP COLUMN packed;
ALTER TABLE sites DROP COLUMN layout;
ALTER TABLE requirement DROP COLUMN texts_until;
