package function

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"siafu/lambda"
)

// connection is a connection to an endpoint. A warm function reuses it.
type connection struct {
	address, fingerprint string
	client               http.Client
}

// dialTime bounds the time for a connection, including TLS, so that a missing endpoint does not use
// up the time of the invocation.
const dialTime = 10 * time.Second

// dial returns the connection to the endpoint of a task: the last one if it has the same endpoint.
func (f *Function) dial(p lambda.Pull) *connection {
	if l := f.connection; l != nil && l.address == p.Address && l.fingerprint == p.Fingerprint {
		return l
	}
	f.connection.close()
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
		TLSClientConfig: trusting(p.Fingerprint), DisableCompression: true,
	}
	if f.relay != nil {
		// Not http.ProxyFromEnvironment, which does not use the proxy for loopback addresses.
		t.Proxy = http.ProxyURL(f.relay)
	}
	f.connection = &connection{address: p.Address, fingerprint: p.Fingerprint, client: http.Client{Transport: t, CheckRedirect: noRedirect}}
	return f.connection
}

// noRedirect rejects redirections, which would send the token to another server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (l *connection) close() {
	if l != nil {
		l.client.CloseIdleConnections()
	}
}

// trusting returns the TLS configuration of a client that accepts only the certificate with a
// fingerprint. It uses no certificate authority.
func trusting(fingerprint string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // of names and authorities; VerifyConnection compares instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the endpoint presents no certificate")
			}
			sum := sha256.Sum256(s.PeerCertificates[0].Raw)
			if got := hex.EncodeToString(sum[:]); subtle.ConstantTimeCompare([]byte(got), []byte(fingerprint)) != 1 {
				return fmt.Errorf("wrong endpoint: the fingerprint of its certificate is %s, want %s", got, fingerprint)
			}
			return nil
		},
	}
}

// errorText bounds the bytes of an error response that are read.
const errorText = 1 << 10

// ask sends a request with the token. It returns the response if that has the wanted status. body
// may be nil.
func (l *connection) ask(ctx context.Context, method, path, token string, body []byte, want int) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method,
		(&url.URL{Scheme: "https", Host: l.address, Path: path}).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, errorText)) // a partial text is useful too
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the endpoint %s refuses %s %s: %s: %s", l.address, method, path, answer.Status,
			strings.TrimSpace(string(text)))
	}
	return answer, nil
}
