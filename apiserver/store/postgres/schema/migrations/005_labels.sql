-- What access conditions test of a version: labels are hashes, null where there are none. links
-- has three numbers for each link: the key of its parameter, self of its target, and its base.
-- labelled is the low half of the ixsum that they were written with; where that is another one
-- by now, or null, an older release wrote the version and they are not known.
ALTER TABLE res ADD COLUMN labelled int4, ADD COLUMN labels int8[], ADD COLUMN links int8[];
ALTER TABLE hist ADD COLUMN labelled int4, ADD COLUMN labels int8[], ADD COLUMN links int8[];

---- create above / drop below ----

ALTER TABLE res DROP COLUMN labelled, DROP COLUMN labels, DROP COLUMN links;
ALTER TABLE hist DROP COLUMN labelled, DROP COLUMN labels, DROP COLUMN links;
