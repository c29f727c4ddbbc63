package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"fmt"
	"os"

	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// keypair is an ECDSA key on the curve P-256, which cosign uses too. It implements sign.Keypair.
type keypair struct {
	private   *ecdsa.PrivateKey
	publicPEM []byte
	hint      []byte
}

// readKeypair reads a private key in PEM (PKCS #8), such as `release keygen` or openssl write.
func readKeypair(path string) (*keypair, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.SkipPassword)
	if err != nil {
		return nil, fmt.Errorf("%s must have a private key in PEM: %w", path, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s must have an ECDSA key on the curve P-256", path)
	}
	return newKeypair(private)
}

func newKeypair(private *ecdsa.PrivateKey) (*keypair, error) {
	text, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &keypair{private, text, []byte(base64.StdEncoding.EncodeToString(sum[:]))}, nil
}

func (k *keypair) GetHashAlgorithm() common.HashAlgorithm { return common.HashAlgorithm_SHA2_256 }
func (k *keypair) GetSigningAlgorithm() common.PublicKeyDetails {
	return common.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}
func (k *keypair) GetHint() []byte                  { return k.hint }
func (k *keypair) GetKeyAlgorithm() string          { return "ECDSA" }
func (k *keypair) GetPublicKey() crypto.PublicKey   { return k.private.Public() }
func (k *keypair) GetPublicKeyPem() (string, error) { return string(k.publicPEM), nil }

// SignData returns the signature and the digest of data.
func (k *keypair) SignData(_ context.Context, data []byte) (signature, digest []byte, err error) {
	sum := sha256.Sum256(data)
	signature, err = k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	return signature, sum[:], err
}

func runKeygen(args []string) error {
	flags := flag.NewFlagSet("keygen", flag.ContinueOnError)
	out := flags.String("out", "", "`path` of the private key; that of the public key ends in .pub")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := required(flags, "out"); err != nil {
		return err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pair, err := newKeypair(private)
	if err != nil {
		return err
	}
	text, err := cryptoutils.MarshalPrivateKeyToPEM(private)
	if err != nil {
		return err
	}
	// An existing key is not replaced: its public key would be lost, and earlier signatures could not
	// be verified.
	file, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	return os.WriteFile(*out+".pub", pair.publicPEM, 0o644)
}
