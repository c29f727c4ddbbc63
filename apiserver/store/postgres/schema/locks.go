package schema

// The constant keys of advisory locks. They are all in this file, because two locks with the same key
// would exclude each other. Releases that run at the same time use the same keys, so a key does not
// change.
//
// These are the first of two keys. The second is the number of the site, and 0 for AuditLock.
const (
	// AuditLock is held while partitions of the audit log are created or dropped.
	AuditLock = 0x70616175
	// EraseLock is shared by transactions that erase events and deliveries of a site. A transaction that
	// restores deliveries holds it alone.
	EraseLock = 0x70616572
	// RelayLock is held by a transaction while it moves the events of a site out of the table outbox,
	// or erases events in that table.
	RelayLock = 0x70616465
	// RenewalLock is held by the process that reindexes a site.
	RenewalLock = 0x7061646b
	// RetentionLock is held by the process that removes what a site no longer keeps.
	RetentionLock = 0x70616467
	// TrimLock is held by a transaction while it removes old deliveries of a site.
	TrimLock = 0x70616466
)

// These are keys of locks with one key.
const (
	// riverLock is held while River's tables are migrated.
	riverLock = 0x70617264
	// contractLock is held by the process that runs Contract.
	contractLock = 0x7061646b74787473
)
