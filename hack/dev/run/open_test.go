package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOpenDoor(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	defer target.Close()
	files := outputs(t.TempDir())
	if err := files.writeToken("of-the-demo"); err != nil {
		t.Fatal(err)
	}
	door, err := listenOpen(0)
	if err != nil {
		t.Fatal(err)
	}
	go door.serve(t.Context(), target.URL, files)
	for _, test := range []struct{ sent, want string }{{"", "Bearer of-the-demo"}, {"Bearer mine", "Bearer mine"}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, door.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.sent != "" {
			request.Header.Set("Authorization", test.sent)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got := make([]byte, 100)
		n, _ := response.Body.Read(got) // io.EOF comes with the text or after it
		if string(got[:n]) != test.want {
			t.Errorf("Authorization %q arrives as %q, want %q", test.sent, got[:n], test.want)
		}
	}
}
