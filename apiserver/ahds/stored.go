package ahds

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
)

// CheckStored returns an error if the stored body of a record of this facade, which another site may
// have written, cannot be read.
func CheckStored(recordType string, body []byte) error {
	for _, k := range kinds() {
		if k.recordType == recordType {
			_, err := k.decode(body)
			return err
		}
	}
	if recordType == event.Type && jsontext.Value(body).IsValid() {
		return nil
	}
	return fmt.Errorf("%w: it is not JSON, or its type %q is unknown", errBadBody, recordType)
}
