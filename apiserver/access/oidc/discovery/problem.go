package discovery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/paddock-health/paddock/apiserver/egress"
)

// Problem describes an error of Fetch for the owner of a Site. The text continues a sentence about
// the issuer. It contains no address and no part of a document, and is equal for equal problems.
func Problem(err error) string {
	var wrong invalidError
	var status statusError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &wrong):
		return string(wrong)
	case errors.Is(err, egress.ErrProhibited):
		return "its address is not public, nor in a network that the operator allows (--issuer-networks)"
	case errors.As(err, &status):
		return fmt.Sprintf("it answers with status %d where 200 is expected", int(status))
	case errors.As(err, &name):
		return "its host name cannot be resolved"
	case errors.As(err, &certificate):
		return "its TLS certificate is not trusted, or is not for its host: set caBundle to the certificates of its authority"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("it does not answer within %.0f s", fetchTimeout.Seconds())
	default:
		return "it cannot be reached over HTTPS: check its address and its TLS settings"
	}
}
