package site

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// TestConnectTLS checks that the message for a connection that fails because of TLS names the part of the
// Secret that decides.
func TestConnectTLS(t *testing.T) {
	issued := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1, which is its own authority
	defer issued.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Certificate().Raw}))
	const untrusted = "its TLS certificate is not trusted or not valid for the host: check ca.crt of the Secret, and sslmode in the connection string"
	for name, test := range map[string]struct {
		// server is the configuration of a server with TLS. It is nil for a server without TLS.
		server *tls.Config
		host   string
		mode   string
		ca     string
		want   string
	}{
		"no TLS": {host: "127.0.0.1", mode: "require", want: "it does not support TLS: enable TLS in the server, or set sslmode=disable in the connection string"},
		"an unknown authority": {
			server: &tls.Config{Certificates: issued.TLS.Certificates},
			host:   "127.0.0.1", mode: "verify-full", want: untrusted,
		},
		"an unknown authority, whatever the host": {
			server: &tls.Config{Certificates: issued.TLS.Certificates},
			host:   "127.0.0.1", mode: "verify-ca", want: untrusted,
		},
		"another host": {
			server: &tls.Config{Certificates: issued.TLS.Certificates},
			host:   "localhost", mode: "verify-full", ca: authority, want: untrusted,
		},
		"no certificate of the client": {
			server: &tls.Config{Certificates: issued.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert},
			host:   "127.0.0.1", mode: "require", want: "it ended the TLS connection (tls: certificate required): check tls.crt and tls.key of the Secret",
		},
		"other versions of TLS": {
			server: &tls.Config{Certificates: issued.TLS.Certificates, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10},
			host:   "127.0.0.1", mode: "require", want: "it ended the TLS connection (tls: protocol version not supported)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go answerTLS(listener, test.server)
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			data := map[string][]byte{"uri": []byte("postgres://oak:secret@" + test.host + ":" + port + "/oak?sslmode=" + test.mode)}
			if test.ca != "" {
				data[dsn.CAKey] = []byte(test.ca)
			}
			connection, err := dsn.Parse(data, "uri")
			if err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Dial: (&net.Dialer{}).DialContext}
			_, bad := r.connect(t.Context(), connection)
			if bad == nil || !strings.HasPrefix(bad.message, "The database cannot be used: "+test.want) {
				t.Errorf("got %+v, want %s", bad, test.want)
			}
		})
	}
}

// answerTLS answers the request of each connection for TLS, and then ends the connection.
func answerTLS(listener net.Listener, config *tls.Config) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			request := make([]byte, 8) // PostgreSQL manual, 55.7, SSLRequest
			if _, err := io.ReadFull(conn, request); err != nil {
				return
			}
			if config == nil {
				_, _ = conn.Write([]byte("N"))
				return
			}
			_, _ = conn.Write([]byte("S"))
			_ = tls.Server(conn, config).Handshake() // the client reports the error
		}()
	}
}
