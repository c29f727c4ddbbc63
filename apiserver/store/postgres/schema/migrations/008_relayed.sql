-- How many deliveries the relay has made for each webhook, in rows that only the relay writes. When it
-- counted them in the rows of webhooks, it waited for the transactions that store results of attempts,
-- and with it the new deliveries to all other webhooks.

CREATE TABLE relayed (
  site       int  NOT NULL,
  webhook    text COLLATE "C" NOT NULL,
  deliveries int8 NOT NULL,
  PRIMARY KEY (site, webhook)
) WITH (fillfactor = 50);
-- Pending are both together: webhook.pending is now the number of deliveries that were made pending
-- again, less those that have ended.

---- create above / drop below ----

UPDATE webhook w SET pending = w.pending + r.deliveries FROM relayed r WHERE r.site = w.site AND r.webhook = w.webhook;
DROP TABLE relayed;
