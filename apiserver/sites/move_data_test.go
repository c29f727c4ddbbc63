package sites

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// TestReturnChecksData shows that a move does not return from a database that is empty or was created again, which
// would delete the records in the former storage.
func TestReturnChecksData(t *testing.T) {
	ctx := t.Context()
	server := startPostgres(t)
	rex := store.Key{Type: "Patient", ID: "rex"}
	put := func(to *database, key store.Key) {
		t.Helper()
		if _, err := to.Write(ctx, []store.Op{{Kind: store.Put, Key: key, Body: store.Body{JSON: []byte(`{}`)}}}); err != nil {
			t.Fatal(err)
		}
	}
	former := openDatabase(t, server, "former")
	put(former, rex)
	moved := openDatabase(t, server, "moved")
	put(moved, rex)
	empty := openDatabase(t, server, "empty")
	again := openDatabase(t, server, "again")
	put(again, store.Key{Type: "Patient", ID: "later"})
	id, err := schema.DataID(ctx, moved.pool, siteKey)
	if err != nil || id == "" {
		t.Fatalf("the ID of the data is %q, %v", id, err)
	}
	nowhere, err := client.New(&rest.Config{Host: "https://127.0.0.1:1"}, client.Options{}) // for reports
	if err != nil {
		t.Fatal(err)
	}
	newMover := func(serving *database, dataID string, direction sitesv1.MoveDirection) (*mover, *sitesv1.SiteMove) {
		return &mover{
			sites: &Sites{client: nowhere}, held: heldSite{key: siteKey}, served: serving, reported: time.Now(),
			reference: sitesv1.SiteMoveReference{Phase: sitesv1.MoveCopying, Direction: direction},
		}, &sitesv1.SiteMove{Status: sitesv1.SiteMoveStatus{DataID: dataID}}
	}
	for name, test := range map[string]struct {
		serving   *database
		dataID    string
		direction sitesv1.MoveDirection
		want      error
	}{
		"the data that was moved":              {moved, id, sitesv1.MoveBack, nil},
		"an empty database":                    {empty, id, sitesv1.MoveBack, errOtherData},
		"a database that was created again":    {again, id, sitesv1.MoveBack, errOtherData},
		"a SiteMove without an ID of its data": {again, "", sitesv1.MoveBack, nil},
		"a move that does not return":          {again, id, sitesv1.MoveForward, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, object := newMover(test.serving, test.dataID, test.direction)
			if err := m.checkDataID(ctx, object); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	for name, serving := range map[string]*database{"empty": empty, "again": again} {
		t.Run("nothing is copied from the database "+name, func(t *testing.T) {
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			m, object := newMover(serving, id, sitesv1.MoveBack)
			if err := m.work(bounded, object, former); !errors.Is(err, errOtherData) || !strings.Contains(err.Error(), "a backup that was made after the switch") {
				t.Errorf("got %v, want %v", err, errOtherData)
			}
			if _, err := former.Get(ctx, rex); err != nil {
				t.Errorf("the record in the former storage: %v", err)
			}
		})
	}
}
