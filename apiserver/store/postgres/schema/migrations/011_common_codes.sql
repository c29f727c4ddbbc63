-- Codes that many records have, such as gender male, have no rows: they are bits of res.present. Releases
-- before server level 3 search their rows in ix_tok. They are written until schema.Contract renames the
-- table to ix_code.

-- Until then, a rollback to the release before is possible.
UPDATE requirement SET texts_until = GREATEST(texts_until, now() + interval '7 days');

-- A database without sites has nothing to migrate.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM sites) THEN
    ALTER TABLE ix_tok RENAME TO ix_code;
    ALTER INDEX ix_tok_pkey RENAME TO ix_code_pkey;
    UPDATE requirement SET oldest_server = GREATEST(oldest_server, 3);
  END IF;
END $$;

---- create above / drop below ----

DO $$
BEGIN
  IF to_regclass('ix_code') IS NOT NULL THEN
    ALTER TABLE ix_code RENAME TO ix_tok;
    ALTER INDEX ix_code_pkey RENAME TO ix_tok_pkey;
  END IF;
END $$;
