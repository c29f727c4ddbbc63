-- What the aggregated API keeps beside a record: how often it alone was changed, at which version it was written, and the text.

ALTER TABLE res ADD COLUMN metadata bytea;

---- create above / drop below ----

ALTER TABLE res DROP COLUMN metadata;
