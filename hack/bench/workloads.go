package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

// body is a Patient of about 850 bytes, as practices have them.
func body(n int) []byte {
	return fmt.Appendf(nil, `{"resourceType":"Patient","active":true,`+
		`"identifier":[{"use":"official","system":"https://clinic.example.org/patients","value":"P-%07d"},{"system":"urn:oid:1.2.36.146.595.217.0.1","value":"9851%011d"}],`+
		`"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[`+
		`{"url":"species","valueCodeableConcept":{"coding":[{"system":"http://hl7.org/fhir/animal-species","code":"canislf","display":"Dog"}]}},`+
		`{"url":"breed","valueCodeableConcept":{"coding":[{"system":"http://snomed.info/sct","code":"58108001","display":"Golden retriever"}]}}]}],`+
		`"name":[{"use":"usual","family":"Okafor","given":["Rex"]}],"gender":"male","birthDate":"2019-05-03",`+
		`"telecom":[{"system":"phone","value":"+61 3 5550 %04d","use":"home"}],"multipleBirthInteger":%d}`, n, n, n%10000, n)
}

// fullBody is a Patient of about 790 bytes with name, address and two contact points, which have 19
// texts in the search index; those of body have eight. Names and places repeat, at random.
func fullBody(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 0))
	return fmt.Appendf(nil, `{"resourceType":"Patient","active":true,`+
		`"identifier":[{"use":"official","system":"https://clinic.example.org/patients","value":"P-%07d"},{"system":"urn:oid:1.2.36.146.595.217.0.1","value":"9851%011d"}],`+
		`"name":[{"use":"usual","family":"%s","given":["%s","%s"]}],"gender":"male","birthDate":"%d-05-%02d",`+
		`"telecom":[{"system":"phone","value":"+61 3 5550 %04d","use":"home"},{"system":"email","value":"owner.%d@example.org"}],`+
		`"address":[{"use":"home","line":["%d %s Street"],"city":"%s","state":"VIC","postalCode":"%d","country":"AU"}],`+
		`"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[`+
		`{"url":"species","valueCodeableConcept":{"coding":[{"system":"http://hl7.org/fhir/animal-species","code":"canislf","display":"Dog"}]}}]}]}`,
		n, n, word(r, 3000), word(r, 600), word(r, 600), 2001+r.IntN(25), 1+r.IntN(28),
		r.IntN(10000), n, 1+r.IntN(400), word(r, 800), word(r, 300), 2000+r.IntN(3000))
}

// word returns one of count words. Each has six letters, and their beginnings are spread over the alphabet.
func word(r *rand.Rand, count int) string {
	n := r.IntN(count) * (26 * 26 * 26 / count)
	letters := []byte{byte('A' + n/26/26), 'a', byte('a' + n/26%26), 'o', byte('a' + n%26), 'e'}
	return string(letters)
}

// rawObjects writes and reads Records through client-go alone, without the API server.
type rawObjects struct {
	client rest.Interface
	mu     sync.Mutex
	made   int
}

func newRawObjects(config *rest.Config) (*rawObjects, error) {
	scheme := runtime.NewScheme()
	if err := recordsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion = &recordsv1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	return &rawObjects{client: client}, err
}

func (o *rawObjects) create(ctx context.Context, n int) error {
	now := metav1.NowMicro()
	object := &recordsv1.Record{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "Record"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("raw-%d", n), Namespace: "default"},
		Spec: recordsv1.RecordSpec{
			SiteKey: "raw", Type: "Patient", ID: fmt.Sprintf("raw-%d", n), UID: "00000000-0000-0000-0000-000000000000",
			Lineage: "00000000-0000-0000-0000-000000000000", Write: "00000000-0000-0000-0000-000000000000",
			Version: 1, Method: "POST", Created: now, Updated: now, Body: string(body(n)),
		},
	}
	err := o.client.Post().Namespace("default").Resource("records").Body(object).Do(ctx).Into(&recordsv1.Record{})
	if err == nil {
		o.mu.Lock()
		o.made = max(o.made, n)
		o.mu.Unlock()
	}
	return err
}

func (o *rawObjects) get(ctx context.Context, n int) error {
	o.mu.Lock()
	n %= o.made + 1
	o.mu.Unlock()
	err := o.client.Get().Namespace("default").Resource("records").Name(fmt.Sprintf("raw-%d", n)).Do(ctx).Into(&recordsv1.Record{})
	return err
}

// site is an HTTP client of a site, with keep-alive and a real token. ids are those of the Patients
// that create has created.
type site struct {
	base, token string
	client      *http.Client
	mu          sync.Mutex
	ids         []string
}

func newSite(base, token string) *site {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = 256, 256
	transport.IdleConnTimeout = 5 * time.Second // so that connections of a short peak do not count as the server's growth
	transport.DisableCompression = true         // gzip would distort the results
	return &site{base: base, token: token, client: &http.Client{Transport: transport}}
}

func (s *site) create(ctx context.Context, n int) error {
	answer, err := s.send(ctx, http.MethodPost, "/patient", body(n), http.StatusCreated)
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	s.mu.Lock()
	s.ids = append(s.ids, made.ID)
	s.mu.Unlock()
	return nil
}

func (s *site) id(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[n%len(s.ids)]
}

func (s *site) update(ctx context.Context, n int) error {
	id := s.id(n)
	text := bytes.Replace(body(n+1_000_000), []byte(`"resourceType":"Patient",`), []byte(`"resourceType":"Patient","id":"`+id+`",`), 1)
	return s.do(ctx, http.MethodPut, "/patient/"+id, text, http.StatusOK)
}

func (s *site) read(ctx context.Context, n int) error {
	return s.do(ctx, http.MethodGet, "/patient/"+s.id(n), nil, http.StatusOK)
}

// send sends a request and returns the body of the response. It fails with an *answerError unless the
// status is want.
func (s *site) send(ctx context.Context, method, path string, text []byte, want int) ([]byte, error) {
	var answer bytes.Buffer
	err := s.exchange(ctx, method, path, text, want, &answer)
	return answer.Bytes(), err
}

// answers has buffers for responses that are read and not used. Reuse saves processor time of the load
// generator, which would affect the results.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// do is like send for callers that do not need the response.
func (s *site) do(ctx context.Context, method, path string, text []byte, want int) error {
	answer := answers.Get().(*bytes.Buffer)
	defer answers.Put(answer)
	answer.Reset()
	return s.exchange(ctx, method, path, text, want, answer)
}

func (s *site) exchange(ctx context.Context, method, path string, text []byte, want int, answer *bytes.Buffer) error {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = answer.ReadFrom(response.Body)
	if err == nil && response.StatusCode != want {
		err = &answerError{method + " " + path, response.Status, answer.String(), response.StatusCode, response.Header.Get("Retry-After") != ""}
	}
	return err
}

// answerError is a response with another status than the wanted one.
type answerError struct {
	request, status, body string
	code                  int
	// retryAfter reports whether the response says when to try again.
	retryAfter bool
}

func (e *answerError) Error() string { return e.request + ": " + e.status + ": " + e.body }
