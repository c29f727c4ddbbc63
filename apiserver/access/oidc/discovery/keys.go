package discovery

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxKeys is the maximum number of keys in a set. A larger set is an error.
	maxKeys = 100
	// minRSABits and maxRSABits limit the sizes of the RSA keys that are used. Smaller keys are
	// ignored because they are weak, and larger keys because they are slow.
	minRSABits, maxRSABits = 2048, 8192
)

// Algorithms are the accepted signature algorithms, all of which are asymmetric (RFC 8725 §3.1).
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// parseKeys returns the keys of a JSON Web Key Set that can verify a signature. It ignores keys of
// unknown kinds (RFC 7517 §5). It refuses a set with a private or symmetric key, because every
// reader of the set could sign tokens. Errors: ErrInvalid.
func parseKeys(content []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, invalid("its keys are not a JSON Web Key Set (RFC 7517)")
	}
	if len(set.Keys) > maxKeys {
		return nil, invalid("it has more than 100 keys")
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) != nil {
			continue
		}
		if !key.IsPublic() {
			return nil, invalid("its keys include a private or symmetric key, with which anybody can sign: publish public keys only, and replace the published private or symmetric key")
		}
		if usable(key) {
			keys = append(keys, jose.JSONWebKey{KeyID: key.KeyID, Algorithm: key.Algorithm, Use: key.Use, Key: key.Key})
		}
	}
	if len(keys) == 0 {
		return nil, invalid("it has no public key for RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA")
	}
	return keys, nil
}

func usable(key jose.JSONWebKey) bool {
	for _, algorithm := range Algorithms {
		if Fits(key, algorithm) {
			return true
		}
	}
	return false
}

// Fits reports whether a key can verify signatures of an algorithm, by the type and size of the key
// and its members "use" and "alg".
func Fits(key jose.JSONWebKey, algorithm jose.SignatureAlgorithm) bool {
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != string(algorithm) {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return (strings.HasPrefix(string(algorithm), "RS") || strings.HasPrefix(string(algorithm), "PS")) &&
			bits >= minRSABits && bits <= maxRSABits
	case *ecdsa.PublicKey:
		return algorithm == jose.ES256 && public.Curve == elliptic.P256() ||
			algorithm == jose.ES384 && public.Curve == elliptic.P384() ||
			algorithm == jose.ES512 && public.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return algorithm == jose.EdDSA
	}
	return false
}
