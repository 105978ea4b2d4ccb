package local

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Where a sandbox whose bandwidth is limited finds the relay that all its connections
// must take, and what it shows there.
const (
	RelayVariable      = "SIAFU_RELAY"       // HOST:PORT
	RelayTokenVariable = "SIAFU_RELAY_TOKEN" // for Proxy-Authorization: Bearer TOKEN
)

// dialTime is how long a target may take to answer.
const dialTime = 10 * time.Second

// relay is HTTP CONNECT for sandboxes: a connection to a target, at the pace of the
// sandbox's network. It ends with either side, or with the sandbox.
func (s *Service) relay(w http.ResponseWriter, r *http.Request) {
	b := s.bearer(r)
	switch {
	case b == nil:
		s.refuse(w, http.StatusProxyAuthRequired, "InvalidSandbox", "there is no such sandbox")
		return
	case !s.mayReach(r.Host):
		s.refuse(w, http.StatusForbidden, "TargetNotAllowed", "no sandbox may connect to "+r.Host)
		return
	}
	far, err := net.DialTimeout("tcp", r.Host, dialTime)
	if err != nil {
		s.refuse(w, http.StatusBadGateway, "TargetUnreachable", err.Error())
		return
	}
	defer far.Close()
	near, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(w, http.StatusInternalServerError, "ServiceException", err.Error())
		return
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		s.tunnel(b, near, ahead, far)
	}
}

// bearer is the sandbox whose token a request shows; nil if it is nobody's, or if no
// sandbox needs a relay.
func (s *Service) bearer(r *http.Request) *sandbox {
	token, _ := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.sandboxes[token]; b != nil && s.o.Limits.Bandwidth {
		return b
	}
	return nil
}

// mayReach tells whether a target is one that sandboxes may connect to.
func (s *Service) mayReach(target string) bool {
	host, _, err := net.SplitHostPort(target)
	return err == nil && (net.ParseIP(host).IsLoopback() || slices.Contains(s.o.Targets, target))
}

// tunnel carries bytes both ways until both have ended.
func (s *Service) tunnel(b *sandbox, near net.Conn, ahead io.Reader, far net.Conn) {
	ended := make(chan struct{}, 2)
	carry := func(to net.Conn, from io.Reader, pace *bucket) {
		n, err := io.Copy(paced{Writer: to, bucket: pace, ended: b.ended}, from)
		s.count(func(stats *Stats) { stats.Relayed += n })
		if end, ok := to.(*net.TCPConn); !ok || err != nil || end.CloseWrite() != nil {
			_, _ = near.Close(), far.Close() // the other direction has no way either
		}
		ended <- struct{}{}
	}
	go carry(far, ahead, b.out)
	go carry(near, far, b.in)
	for range 2 {
		select {
		case <-ended:
		case <-b.ended:
			return // which closes both
		}
	}
}
