package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// DefaultEndpoint is the endpoint if Config has none.
const DefaultEndpoint = "https://s3.amazonaws.com"

// Config is the place of the backups of a site. The credentials are those of the environment:
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if they are temporary, AWS_SESSION_TOKEN.
type Config struct {
	// Address is the place of the backups: s3://{bucket}/{path}. Required.
	Address string
	// Endpoint is the URL of the S3 API. If it is empty, DefaultEndpoint is used.
	Endpoint string
	// Region is the region of the bucket. If it is empty, the endpoint is asked for it.
	Region string
	// CAFile is the path of a PEM file of authorities that are trusted for the endpoint's certificate,
	// in addition to those of the operating system. It may be empty, or a file that does not exist.
	CAFile string
}

// folder is the place of the backups of a site. Names are relative to it.
type folder struct {
	client       *minio.Client
	bucket, path string
}

// ParseAddress returns the bucket and the path of an address of backups, s3://{bucket}/{path}.
func ParseAddress(address string) (bucket, path string, err error) {
	rest, ok := strings.CutPrefix(address, "s3://")
	bucket, path, _ = strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if !ok || bucket == "" || path == "" {
		return "", "", fmt.Errorf("%q is not an address of backups; it must have the form s3://bucket/path", address)
	}
	return bucket, path, nil
}

// ParseEndpoint returns the URL of an endpoint of S3, or that of DefaultEndpoint if endpoint is empty.
func ParseEndpoint(endpoint string) (*url.URL, error) {
	at, err := url.Parse(cmp.Or(endpoint, DefaultEndpoint))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || strings.Trim(at.Path, "/") != "" || at.RawQuery != "" || at.User != nil {
		return nil, fmt.Errorf("%q is not an endpoint of S3; it must have the form https://host:port", endpoint)
	}
	return at, nil
}

// open returns the folder of config. It sends no request.
func open(config Config) (*folder, error) {
	bucket, path, err := ParseAddress(config.Address)
	if err != nil {
		return nil, err
	}
	endpoint, err := ParseEndpoint(config.Endpoint)
	if err != nil {
		return nil, err
	}
	key, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if key == "" || secret == "" {
		return nil, errors.New("there are no credentials of S3; set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY")
	}
	transport, err := transportWith(config.CAFile)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, os.Getenv("AWS_SESSION_TOKEN")), Region: config.Region,
		Secure: endpoint.Scheme == "https", Transport: transport,
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", endpoint, err)
	}
	return &folder{client, bucket, path}, nil
}

// transportWith returns a transport that trusts the authorities of a file, which may not exist, in
// addition to those of the operating system.
func transportWith(caFile string) (http.RoundTripper, error) {
	transport, err := minio.DefaultTransport(true)
	if err != nil || caFile == "" {
		return transport, err
	}
	pem, err := os.ReadFile(caFile)
	if errors.Is(err, fs.ErrNotExist) {
		return transport, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the authorities of S3: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the authorities of the operating system: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM; use a file with the CA certificates of the S3 API", caFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

func (f *folder) key(name string) string { return f.path + "/" + name }

// put stores an object as a whole. Readers see all of it or nothing.
func (f *folder) put(ctx context.Context, name string, content []byte) error {
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", SendContentMd5: true, DisableMultipart: true}
	if _, err := f.client.PutObject(ctx, f.bucket, f.key(name), bytes.NewReader(content), int64(len(content)), options); err != nil {
		return fmt.Errorf("write s3://%s/%s: %w", f.bucket, f.key(name), err)
	}
	return nil
}

// get opens an object. Errors: fs.ErrNotExist.
func (f *folder) get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := f.client.GetObject(ctx, f.bucket, f.key(name), minio.GetObjectOptions{})
	if err == nil {
		_, err = object.Stat() // GetObject sends no request
	}
	if err != nil {
		return nil, f.readError(name, err)
	}
	return object, nil
}

// has reports whether an object exists.
func (f *folder) has(ctx context.Context, name string) (bool, error) {
	_, err := f.client.StatObject(ctx, f.bucket, f.key(name), minio.StatObjectOptions{})
	if err != nil {
		err = f.readError(name, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f *folder) readError(name string, err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		err = fs.ErrNotExist
	}
	return fmt.Errorf("read s3://%s/%s: %w", f.bucket, f.key(name), err)
}

// folders returns the names of the folders in the folder.
func (f *folder) folders(ctx context.Context) ([]string, error) {
	var names []string
	err := f.list(ctx, "", false, func(name string) error {
		if folder, ok := strings.CutSuffix(name, "/"); ok {
			names = append(names, folder)
		}
		return nil
	})
	return names, err
}

// remove deletes the objects whose names begin with prefix.
func (f *folder) remove(ctx context.Context, prefix string) error {
	return f.list(ctx, prefix, true, func(name string) error { return f.removeObject(ctx, name) })
}

func (f *folder) removeObject(ctx context.Context, name string) error {
	if err := f.client.RemoveObject(ctx, f.bucket, f.key(name), minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("delete s3://%s/%s: %w", f.bucket, f.key(name), err)
	}
	return nil
}

// list calls do with the names of the objects in the folder that begin with prefix. If below is true, it
// includes the objects in all folders below. Otherwise it includes only the names of these folders, which
// end with a slash.
func (f *folder) list(ctx context.Context, prefix string, below bool, do func(name string) error) error {
	ctx, cancel := context.WithCancel(ctx) // ends the listing if do fails
	defer cancel()
	for object := range f.client.ListObjects(ctx, f.bucket, minio.ListObjectsOptions{Prefix: f.key(prefix), Recursive: below}) {
		if object.Err != nil {
			return fmt.Errorf("list s3://%s/%s: %w", f.bucket, f.key(prefix), object.Err)
		}
		if err := do(strings.TrimPrefix(object.Key, f.path+"/")); err != nil {
			return err
		}
	}
	return ctx.Err()
}
