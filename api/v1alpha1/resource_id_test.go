package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestResourceID(t *testing.T) {
	made := "0198c4f2-7d1e-7c3a-9b5f-000000000001"
	if got := ResourceID("webhooks", "oak", made); got != made {
		t.Errorf("the id of an object named after it is %s", got)
	}
	seen := map[string]string{}
	for _, of := range [][3]string{
		{"webhooks", "oak", "hook"},
		{"webhookevents", "oak", "hook"},
		{"webhooks", "elm", "hook"},
		{"webhooks", "oak", "hook2"},
		{"webhooks", "oak", "0198c4f27d1e7c3a9b5f000000000001"},
		{"webhooks", "oak", "0198c4f2-7d1e-7c3a-9b5f-00000000000g"},
	} {
		id := ResourceID(of[0], of[1], of[2])
		if _, err := uuid.Parse(id); err != nil || id != strings.ToLower(id) {
			t.Errorf("the id of %v is %q", of, id)
		}
		if other := seen[id]; other != "" {
			t.Errorf("%v and %s have one id", of, other)
		}
		seen[id] = strings.Join(of[:], "/")
		if again := ResourceID(of[0], of[1], of[2]); again != id {
			t.Errorf("%v has the ids %s and %s", of, id, again)
		}
	}
}
