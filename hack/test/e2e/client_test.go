//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	host        = "fhir.e2e.test"
	ingressPort = "30443"
	// requestTimeout is more than a request takes on a busy machine.
	requestTimeout = 20 * time.Second
)

// client makes requests of a site as its editor, through the ingress, by the host's name.
type client struct {
	http  *http.Client
	base  string
	token string
	// contentType is that of the bodies.
	contentType string
}

// newClient trusts the authority of the ingress's certificate and no other.
func newClient(ctx context.Context, site string) *client {
	GinkgoHelper()
	authority, err := os.ReadFile(node.Cluster.CAFile())
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(authority)).To(BeTrue())
	namespace := "clinic-" + site
	token := kubectl(ctx, "-n", namespace, "create", "token", "editor", "--duration=1h", "--audience=paddock.health/"+namespace+"/"+site)
	dialer := &net.Dialer{}
	return &client{
		contentType: "application/fhir+json",
		base:        "https://" + host + "/site/" + site + "/fhir/",
		token:       strings.TrimSpace(token),
		http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, net.JoinHostPort(node.Address().String(), ingressPort))
			},
		}},
	}
}

// at makes the same requests of a site under another host.
func (c *client) at(host, site string) *client {
	other := *c
	other.base = "https://" + host + "/site/" + site + "/fhir/"
	return &other
}

// ahds makes requests of the site's AHDS API.
func (c *client) ahds() *client {
	other := *c
	other.base, other.contentType = strings.TrimSuffix(c.base, "fhir/")+"ahds/v1/", "application/json"
	return &other
}

// send makes a request and returns the status and the body.
func (c *client) send(ctx context.Context, method, path, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", c.contentType)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// put writes a patient of a family name.
func (c *client) put(ctx context.Context, id, family string) (status int, answer []byte, err error) {
	return c.send(ctx, http.MethodPut, "patient/"+id,
		fmt.Sprintf(`{"resourceType":"Patient","id":%q,"name":[{"family":%q}]}`, id, family))
}

// age searches with the field Cache-Control, and returns the field Age of the response.
func (c *client) age(ctx context.Context, cacheControl string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"patient?_id=rex", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Cache-Control", cacheControl)
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("search patients: status %d", response.StatusCode)
	}
	return response.Header.Get("Age"), nil
}

// family reads a patient's name; "" where there is none.
func (c *client) family(ctx context.Context, id string) (string, error) {
	status, answer, err := c.send(ctx, http.MethodGet, "patient/"+id, "")
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("read patient %s: status %d: %s", id, status, answer)
	}
	var patient struct{ Name []struct{ Family string } }
	if err := json.Unmarshal(answer, &patient); err != nil {
		return "", err
	}
	if len(patient.Name) != 1 {
		return "", fmt.Errorf("read patient %s: %d names, want 1", id, len(patient.Name))
	}
	return patient.Name[0].Family, nil
}
