package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"
)

// control serves the provider, counts the requests for its keys and documents, and serves the requests
// of tests below /test/.
type control struct {
	storage         *storage
	provider        http.Handler
	keys, documents atomic.Int64
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /test/fetches", c.fetches)
	mux.HandleFunc("POST /test/rotate", c.rotate)
	mux.HandleFunc("POST /test/retire", c.retire)
	mux.HandleFunc("POST /test/sign", c.sign)
	mux.HandleFunc("POST /test/clients", c.addClient)
	mux.HandleFunc("GET /test/sign-in", c.storage.signInPage)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/keys":
			c.keys.Add(1)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			c.documents.Add(1)
		}
		c.provider.ServeHTTP(w, r)
	})
	return mux
}

// fetches responds with how often the keys, and the documents below /.well-known/, were fetched.
func (c *control) fetches(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]int64{"keys": c.keys.Load(), "documents": c.documents.Load()}, nil)
}

// rotate makes a key for the algorithm that the query names, and responds with its id.
func (c *control) rotate(w http.ResponseWriter, r *http.Request) {
	id, err := c.storage.keys.rotate(jose.SignatureAlgorithm(r.URL.Query().Get("alg")))
	answer(w, map[string]string{"kid": id}, err)
}

// retire removes the key that the query names from the published keys.
func (c *control) retire(w http.ResponseWriter, r *http.Request) {
	answer(w, struct{}{}, c.storage.keys.retire(r.URL.Query().Get("kid")))
}

// sign responds with a token of the claims in the body, signed with the key that the body names, or
// with the newest key. The token has the header in the body. alg and kid are those of the key unless
// the header has them.
func (c *control) sign(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Key    string          `json:"key"`
		Header map[string]any  `json:"header"`
		Claims json.RawMessage `json:"claims"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		answer(w, nil, err)
		return
	}
	key, err := c.storage.keys.find(order.Key)
	if err != nil {
		answer(w, nil, err)
		return
	}
	options := (&jose.SignerOptions{}).WithHeader("kid", key.KeyID)
	algorithm := jose.SignatureAlgorithm(key.Algorithm)
	for name, value := range order.Header {
		if name == "alg" {
			algorithm = jose.SignatureAlgorithm(value.(string))
			continue
		}
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key.Key}, options)
	if err != nil {
		answer(w, nil, err)
		return
	}
	signed, err := signer.Sign(order.Claims)
	if err != nil {
		answer(w, nil, err)
		return
	}
	token, err := signed.CompactSerialize()
	answer(w, map[string]string{"token": token}, err)
}

// addClient registers a client.
func (c *control) addClient(w http.ResponseWriter, r *http.Request) {
	var added client
	err := json.NewDecoder(r.Body).Decode(&added)
	c.storage.mu.Lock()
	c.storage.clients[added.ID] = added
	c.storage.mu.Unlock()
	answer(w, struct{}{}, err)
}

func answer(w http.ResponseWriter, body any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
