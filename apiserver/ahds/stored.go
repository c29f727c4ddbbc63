package ahds

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
)

// CheckStored returns an error if the stored body of a record of this facade, which another site may
// have written, cannot be read, or if the type is not one of this facade. An empty body is that of
// a deleted version.
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
