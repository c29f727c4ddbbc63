package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/egress"
)

// judge returns the result of an exchange.
func judge(got answer, err error, timeout time.Duration) (reason Reason, message string) {
	said := strconv.Itoa(got.status)
	switch {
	case got.status == 0:
		return judgeError(err, timeout)
	case got.status >= 200 && got.status < 300 && err != nil:
		reason, message = judgeError(err, timeout)
		return reason, "the receiver began to answer with status " + said + ": " + message
	case got.status >= 200 && got.status < 300:
		return ReasonDelivered, "the receiver answered with status " + said
	case got.status >= 300 && got.status < 400:
		return ReasonRedirect, "the receiver answered with status " + said + "; redirects are not followed: set url to the address that it redirects to"
	case got.status == http.StatusGone:
		return ReasonGone, "the receiver answered with status 410: it does not want events any more"
	case got.status == http.StatusTooManyRequests || got.status == http.StatusServiceUnavailable:
		return ReasonThrottled, "the receiver answered with status " + said + ": it asks to try later"
	default:
		return ReasonStatus, "the receiver answered with status " + said
	}
}

// judgeError returns the result of an exchange without a complete response. Messages have no addresses,
// because tenants read them and must not learn how names resolve in the operator's network.
func judgeError(err error, timeout time.Duration) (reason Reason, message string) {
	var (
		resolution *net.DNSError
		timedOut   net.Error
	)
	switch {
	case errors.Is(err, egress.ErrProhibited):
		return ReasonForbiddenAddress, "url: the operator does not allow connections to this host or its address; use a receiver with a public address, or ask the operator to allow the address"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ReasonTimeout, fmt.Sprintf("there was no complete response within %v", timeout)
	case errors.As(err, &resolution):
		said := "the name server does not answer" // resolution.Err may have the address of the name server
		if resolution.IsNotFound {
			said = "no such host"
		}
		return ReasonResolution, "the name of the host cannot be resolved: " + said
	case isCertificate(err):
		return ReasonCertificate, "no TLS connection could be made: " + innermost(err)
	case errors.Is(err, errCertificateRequested):
		return ReasonCertificate, "no TLS connection could be made: " + errCertificateRequested.Error()
	case errors.As(err, &timedOut) && timedOut.Timeout():
		return ReasonTimeout, "the receiver does not answer: " + innermost(err)
	default:
		return ReasonConnection, "the connection failed: " + innermost(err)
	}
}

// OwnMessage returns the message of an attempt without the text of a failed connection, because the
// error may quote a response that is not valid HTTP, and thereby what the response repeats of the event.
func (a Attempt) OwnMessage() string {
	if a.Reason == ReasonConnection {
		return "the connection failed"
	}
	return a.Message
}

// maxCause is the maximum length in bytes of the text of an error in a message. The text may quote up to
// 64 KiB that the receiver sent, and a message is stored for each attempt.
const maxCause = 512

// innermost returns the text of an error without the addresses that errors of package net have.
func innermost(err error) string {
	for operation := new(net.OpError); errors.As(err, &operation); {
		err = operation.Err
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}

// isCertificate reports whether an error is of the TLS handshake or a certificate.
func isCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		header       tls.RecordHeaderError
		operation    *net.OpError
		unknown      x509.UnknownAuthorityError
	)
	if errors.As(err, &verification) || errors.As(err, &header) || errors.As(err, &unknown) || errors.Is(err, errNoAuthorities) {
		return true
	}
	// Package tls returns a net.OpError with one of these values of Op for an alert.
	return errors.As(err, &operation) && (operation.Op == "remote error" || operation.Op == "local error")
}
