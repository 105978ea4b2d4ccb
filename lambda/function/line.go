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

// line is a connection to an endpoint, which a warm function uses again.
type line struct {
	address, fingerprint string
	client               http.Client
}

// dialTime is how long a connection may take, TLS included, so that an endpoint that is
// gone does not cost what an invocation may cost.
const dialTime = 10 * time.Second

// dial returns the line to where a task is: the last one, if it leads there.
func (f *Function) dial(p lambda.Pull) *line {
	if l := f.line; l != nil && l.address == p.Address && l.fingerprint == p.Fingerprint {
		return l
	}
	f.line.close()
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
		TLSClientConfig: trusting(p.Fingerprint), DisableCompression: true,
	}
	if f.relay != nil {
		// Not http.ProxyFromEnvironment, which would go past it to loopback addresses.
		t.Proxy = http.ProxyURL(f.relay)
	}
	f.line = &line{address: p.Address, fingerprint: p.Fingerprint, client: http.Client{Transport: t, CheckRedirect: stay}}
	return f.line
}

// stay follows no redirection, which would bring the token elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (l *line) close() {
	if l != nil {
		l.client.CloseIdleConnections()
	}
}

// trusting returns the TLS of a client that takes exactly the certificate with a
// fingerprint, and asks no authority.
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

// errorText bounds what is read of why a request was refused.
const errorText = 1 << 10

// ask sends a request with the token, and gives the answer if it has the status that
// is wanted. body may be nil.
func (l *line) ask(ctx context.Context, method, path, token string, body []byte, want int) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, (&url.URL{Scheme: "https", Host: l.address, Path: path}).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, errorText)) // as much as there is
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the endpoint %s refuses %s %s: %s: %s", l.address, method, path, answer.Status, strings.TrimSpace(string(text)))
	}
	return answer, nil
}
