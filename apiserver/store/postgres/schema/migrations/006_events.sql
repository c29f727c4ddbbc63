-- Events and their way to webhooks.

-- Numbers of events. A write reads it under a lock of the subject that it holds until it commits,
-- so that the numbers of a subject rise in the order of commits.
CREATE SEQUENCE outbox_seq;

-- Events that were accepted and not yet handed on.
CREATE TABLE outbox (
  site     int   NOT NULL,
  seq      int8  NOT NULL,
  at       int8  NOT NULL,  -- time of the write, milliseconds since 1970
  version  int8  NOT NULL,  -- of the record
  event    bytea NOT NULL,  -- JSON of everything but the envelope
  envelope bytea NOT NULL,  -- with gaps
  PRIMARY KEY (site, seq)
);
-- Most rows fit into a page, and a TOAST table would be filled and emptied too.
ALTER TABLE outbox SET (toast_tuple_target = 8160);
-- Rows are short-lived: index entries of dead ones are what the next reader steps over.
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1);

-- Events that were handed on, kept for the retention and while a delivery is pending.
CREATE TABLE event (
  site     int   NOT NULL,
  seq      int8  NOT NULL,
  at       int8  NOT NULL,
  event    bytea NOT NULL,
  envelope bytea NOT NULL,  -- as it is delivered
  PRIMARY KEY (site, seq)
);

-- One event on its way to one webhook.
CREATE TABLE delivery (
  site     int   NOT NULL,
  id       uuid  NOT NULL,  -- delivery.DeliveryID
  webhook  text  COLLATE "C" NOT NULL,
  seq      int8  NOT NULL,
  at       int8  NOT NULL,
  status   int2  NOT NULL,  -- 0 pending, 1 delivered, 2 failed, 3 undelivered
  tries    int4  NOT NULL,  -- attempts since the schedule began
  next     int8,            -- when a job is due, milliseconds; null while there is one, or none is due
  job      int8,            -- the River job that makes the next attempt
  chain    int8,            -- hash of webhook and subject, where the webhook is ordered
  finished int8,
  attempts bytea,           -- JSON, the last ones
  PRIMARY KEY (site, id)
);
CREATE INDEX delivery_log ON delivery (site, webhook, status, at, seq);
CREATE INDEX delivery_due ON delivery (site, next) WHERE next IS NOT NULL;
CREATE INDEX delivery_chain ON delivery (site, chain, seq) WHERE status = 0 AND chain IS NOT NULL;
CREATE INDEX delivery_active ON delivery (site, chain) WHERE status = 0 AND chain IS NOT NULL AND (next IS NOT NULL OR job IS NOT NULL);
ALTER TABLE delivery SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- How a webhook fares: times are milliseconds since 1970, 0 for none.
CREATE TABLE webhook (
  site          int  NOT NULL,
  webhook       text COLLATE "C" NOT NULL,
  pending       int8 NOT NULL DEFAULT 0,  -- deliveries that are
  failures      int8 NOT NULL DEFAULT 0,
  failing_since int8 NOT NULL DEFAULT 0,
  last_success  int8 NOT NULL DEFAULT 0,
  open_until    int8 NOT NULL DEFAULT 0,
  probe         int8,                     -- the River job that makes the one attempt while the breaker is open
  PRIMARY KEY (site, webhook)
);
ALTER TABLE webhook SET (fillfactor = 50);

-- Indexes of River for searches in the arguments and metadata of jobs, which nothing here does.
DROP INDEX IF EXISTS river_job_args_index, river_job_metadata_index;

---- create above / drop below ----

DROP TABLE webhook, delivery, event, outbox;
DROP SEQUENCE outbox_seq;
