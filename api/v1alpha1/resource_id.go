package v1alpha1

import "github.com/google/uuid"

// ResourceID returns the id that an object of the resource webhooks or webhookevents has in the AHDS
// API: its name if that is a UUID in lower case. Otherwise the id is derived from namespace and
// name, so that it stays the same if the object is created again.
func ResourceID(resource, namespace, name string) string {
	if id, err := uuid.Parse(name); err == nil && id.String() == name {
		return name
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/"+resource+"/"+namespace+"/"+name)).String()
}
