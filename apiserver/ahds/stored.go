package ahds

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
)

// CheckStored returns an error if the stored body of a record cannot be decoded, or if recordType is
// not one of Types. Of an event's body, it checks only that the body is JSON. Another site may have
// written the body. An empty body is that of a deleted version, and is valid.
func CheckStored(recordType string, body []byte) error {
	deleted := len(body) == 0
	for _, k := range kinds() {
		switch {
		case k.recordType != recordType:
		case deleted:
			return nil
		default:
			_, err := k.decode(body)
			return err
		}
	}
	if recordType == event.Type && (deleted || jsontext.Value(body).IsValid()) {
		return nil
	}
	return fmt.Errorf("%w: the body is not JSON, or the type %q is unknown", errBadBody, recordType)
}
