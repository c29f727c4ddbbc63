-- The hash of each event's subject in lower case, by which a purge finds the events about a record. It is
-- null in rows of older releases, which a purge reads as before. They are few after the retention of
-- deliveries.
ALTER TABLE event ADD COLUMN subject int8;
CREATE INDEX event_subject ON event (site, subject);

---- create above / drop below ----

ALTER TABLE event DROP COLUMN subject;
