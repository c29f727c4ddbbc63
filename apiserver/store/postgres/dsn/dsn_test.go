package dsn

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestParse(t *testing.T) {
	for uri, want := range map[string]string{
		"postgres://oak:secret@db.example.org/oak":                  "postgres://oak:secret@db.example.org:5432/oak?sslmode=require",
		"postgresql://oak:secret@db.example.org:5433/oak\n":         "postgres://oak:secret@db.example.org:5433/oak?sslmode=require",
		"postgres://oak@[2001:db8::1]/oak?sslmode=verify-full":      "postgres://oak@[2001:db8::1]:5432/oak?sslmode=verify-full",
		"postgres://oak:p%40ss%2Fword@10.0.0.1/oak?sslmode=disable": "postgres://oak:p%40ss%2Fword@10.0.0.1:5432/oak?sslmode=disable",
		"postgres://oak:secret@db/oak?sslmode=verify-ca":            "postgres://oak:secret@db:5432/oak?sslmode=verify-ca",
		"":                                                               "uri is not a URI such as",
		"host=db user=oak":                                               "uri is not a URI such as",
		"https://oak:secret@db/oak":                                      "uri is not a URI such as",
		"postgres:oak":                                                   "uri is not a URI such as",
		"postgres://oak:secret%zz@db/oak":                                "uri is not a URI such as",
		"postgres://o%00k@db/oak":                                        "uri: user has a NUL in it",
		"postgres://oak:%00@db/oak":                                      "uri: password has a NUL in it",
		"postgres://oak@db:0/oak":                                        "uri: port must be a number",
		"postgres://oak@::/oak":                                          "uri: host must be one host name or IP address",
		"postgres://db/oak":                                              "uri: user is missing",
		"postgres://oak:secret@/oak":                                     "uri: host is missing",
		"postgres:///oak?host=/var/run/postgresql":                       "uri: user is missing",
		"postgres://oak@%2Fvar%2Frun/oak":                                "uri is not a URI such as",
		"postgres://oak@a,b/oak":                                         "uri: host must be one host name or IP address",
		"postgres://oak@db:70000/oak":                                    "uri: port must be a number from 1 to 65535",
		"postgres://oak@db":                                              "uri: database must be one name",
		"postgres://oak@db/":                                             "uri: database must be one name",
		"postgres://oak@db/a/b":                                          "uri: database must be one name",
		"postgres://oak:sec@db/oak#ret":                                  "uri: fragment is not allowed",
		"postgres://oak@db/oak?sslmode=prefer":                           "uri: sslmode must be one of disable, require, verify-ca, verify-full",
		"postgres://oak@db/oak?sslmode=":                                 "uri: sslmode must be one of",
		"postgres://oak@db/oak?sslmode=disable&sslmode=require":          "uri: sslmode is given more than once",
		"postgres://oak@db/oak?sslrootcert=/etc/passwd":                  "uri: parameters may contain only sslmode; remove the other parameters",
		"postgres://oak@db/oak?host=169.254.169.254":                     "uri: parameters may contain only sslmode; remove the other parameters",
		"postgres://oak@db/oak?options=-c%20statement_timeout%3D0":       "uri: parameters may contain only sslmode; remove the other parameters",
		"postgres://oak@db/oak?passfile=/root/.pgpass&servicefile=/root": "uri: parameters may contain only sslmode; remove the other parameters",
		"postgres://oak@db/oak?%zz":                                      "uri: parameters cannot be decoded",
	} {
		t.Run(uri, func(t *testing.T) {
			c, err := Parse(map[string][]byte{"uri": []byte(uri)}, "uri")
			got := c.URI
			if err != nil {
				var field *FieldError
				if got = err.Error(); !errors.As(err, &field) {
					t.Errorf("the error is a %T", err)
				}
				if strings.Contains(got, "secret") || strings.Contains(got, "sec@") {
					t.Errorf("the error tells a secret: %s", got)
				}
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestParseFields(t *testing.T) {
	const uri = "postgres://oak:secret@db.example.org/oak"
	pair := newPair(t)
	for name, test := range map[string]struct {
		data map[string]string
		want string // the URI's mode, or the error
	}{
		"no connection string":   {map[string]string{"url": uri}, "uri is not in the Secret"},
		"authorities":            {map[string]string{"uri": uri, "ca.crt": pair.certificate}, "sslmode=verify-full"},
		"authorities, require":   {map[string]string{"uri": uri + "?sslmode=require", "ca.crt": pair.certificate}, "sslmode=verify-ca"},
		"no authorities":         {map[string]string{"uri": uri, "ca.crt": "secret"}, "ca.crt has no certificate in PEM"},
		"a client's certificate": {map[string]string{"uri": uri, "tls.crt": pair.certificate, "tls.key": pair.key}, "sslmode=require"},
		"replicas":               {map[string]string{"uri": uri, "uri-replica": uri}, "sslmode=require"},
		"replicas elsewhere":     {map[string]string{"uri": uri, "uri-replica": uri + "?sslmode=prefer"}, "uri-replica: sslmode must be one of"},
		"another database":       {map[string]string{"uri": uri, "uri-replica": "postgres://oak@replica/elm"}, "uri-replica: database must be the same as in uri"},
		"half a pair":            {map[string]string{"uri": uri, "tls.key": pair.key}, "tls.crt and tls.key must be given together"},
		"no pair":                {map[string]string{"uri": uri, "tls.crt": pair.key, "tls.key": pair.key}, "tls.crt and tls.key are not a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range test.data {
				data[key] = []byte(value)
			}
			c, err := Parse(data, "uri")
			got := c.URI
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestApply makes a configuration of what was parsed twice: as it is, and through a Secret.
func TestApply(t *testing.T) {
	pair := newPair(t)
	parsed, err := Parse(map[string][]byte{
		"url": []byte("postgres://oak:secret@db.example.org/oak"), "url-replica": []byte("postgres://reader:secret@replica.example.org/oak"),
		"ca.crt": []byte(pair.certificate), "tls.crt": []byte(pair.certificate), "tls.key": []byte(pair.key),
	}, "url")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(parsed.Data("uri"), "uri")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed, again); diff != "" {
		t.Errorf("through a Secret (-want +got):\n%s", diff)
	}
	if want := "postgres://reader:secret@replica.example.org:5432/oak?sslmode=verify-full"; again.Replica().URI != want || again.Replica().CA != again.CA {
		t.Errorf("the replicas are at %s, want %s, with the same authorities", again.Replica().URI, want)
	}
	config, err := pgx.ParseConfig(again.URI)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Apply(config, nil); err != nil {
		t.Fatal(err)
	}
	if len(config.TLSConfig.Certificates) != 1 || config.TLSConfig.RootCAs == nil || config.TLSConfig.InsecureSkipVerify ||
		config.TLSConfig.ServerName != "db.example.org" || len(config.Fallbacks) != 0 {
		t.Errorf("the TLS configuration is %+v with fallbacks %v", config.TLSConfig, config.Fallbacks)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("postgres://oak:secret@db.example.org:5433/oak?sslmode=verify-full")
	f.Add("postgres://oak@[::1]/oak")
	f.Add("postgres://oak:%00@a,b/oak?host=/tmp")
	f.Fuzz(func(t *testing.T, uri string) {
		c, err := Parse(map[string][]byte{"uri": []byte(uri)}, "uri")
		if err != nil {
			return
		}
		again, err := Parse(c.Data("uri"), "uri")
		if err != nil || again != c {
			t.Fatalf("%q was read as %q and then as %q, %v", uri, c.URI, again.URI, err)
		}
		config, err := pgx.ParseConfig(c.URI)
		if err != nil {
			t.Fatalf("%q was taken, and pgx does not: %v", uri, err)
		}
		if strings.HasPrefix(config.Host, "/") || len(config.Fallbacks) != 0 || len(config.RuntimeParams) != 0 {
			t.Fatalf("%q connects to %q with %v", uri, config.Host, config.RuntimeParams)
		}
	})
}

func TestSameDatabase(t *testing.T) {
	const uri = "postgres://oak:secret@db:5432/oak?sslmode=require"
	for other, want := range map[string]bool{
		uri: true,
		"postgres://elm:renewed@db:5432/oak?sslmode=verify-full": true,
		"postgres://oak:secret@db:5433/oak?sslmode=require":      false,
		"postgres://oak:secret@db2:5432/oak?sslmode=require":     false,
		"postgres://oak:secret@db:5432/elm?sslmode=require":      false,
	} {
		if got := (Connection{URI: uri}).SameDatabase(Connection{URI: other, CA: "renewed"}); got != want {
			t.Errorf("%s: %t", other, got)
		}
	}
}
