// Command receiver receives the events of a webhook and verifies their signatures. WEBHOOK_SECRET
// is the webhook's secret, ADDR where to listen; TLS is for the proxy in front.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		// The signature is of the bytes as they came: parse them afterwards.
		if err := webhook.Verify(body, r.Header); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var event struct {
			ID, Type, Subject string
			Sequence          int64
			Data              json.RawMessage
		}
		if err := json.Unmarshal(body, &event); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		// Store the event under its id first: the same id can come again. Work on it later.
		log.Printf("%s %s %s %d %s", event.ID, event.Type, event.Subject, event.Sequence, event.Data)
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe(os.Getenv("ADDR"), nil))
}
