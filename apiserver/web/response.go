package web

import (
	"net/http"
	"strconv"
)

// Respond writes a response with a body. For HEAD, it writes the Content-Length of the body but not
// the body.
func Respond(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	header := w.Header()
	SetContent(header, contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone, so that no response can reach it
	}
}

// RespondEmpty writes a response without a body.
func RespondEmpty(w http.ResponseWriter, status int) {
	setCaching(w.Header())
	w.WriteHeader(status)
}

// SetContent sets the header fields of every response with a body, except Content-Length.
func SetContent(header http.Header, contentType string) {
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	setCaching(header)
}

// setCaching keeps a response out of shared caches. A private cache must revalidate it.
func setCaching(header http.Header) {
	header.Set("Cache-Control", "private, no-cache")
	header.Add("Vary", "Accept")
	header.Add("Vary", "Authorization")
}
