package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// RelayVariable names what a sandbox whose bandwidth is limited has in its environment:
// HOST:PORT of the relay that all its connections must take.
const RelayVariable = "SIAFU_RELAY"

// dialTime is how long a target may take to answer.
const dialTime = 10 * time.Second

// openRelay begins to listen for a sandbox.
//
// Design note: each sandbox has a port of its own, which says whose bandwidth it is, and
// the kernel says whose connections come. A token would have to be in all that the
// function connects with.
func (s *Service) openRelay(b *sandbox) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.relay = &http.Server{ReadHeaderTimeout: dialTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.connect(w, r, b) })}
	b.relayAddress = l.Addr().String()
	go func() { _ = b.relay.Serve(l) }() // until it is closed
	return nil
}

func (b *sandbox) closeRelay() {
	if b.relay != nil {
		_ = b.relay.Close()
	}
}

// connect is HTTP CONNECT for a sandbox: a connection to a target, at the pace of the
// sandbox's network. It ends with either side, or with the sandbox.
func (s *Service) connect(w http.ResponseWriter, r *http.Request, b *sandbox) {
	switch {
	case !ours(r.RemoteAddr, b.relayAddress):
		s.refuse(w, http.StatusForbidden, "InvalidSandbox", "the relay is another user's")
		return
	case r.Method != http.MethodConnect || !s.mayReach(r.Host):
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

// ours reports whether a connection between two loopback addresses was made by a process
// of this user. The kernel's table has a line for each side.
func ours(from, to string) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	side := []byte(" " + inTable(from) + " " + inTable(to) + " ")
	_, line, found := bytes.Cut(table, side)
	line, _, _ = bytes.Cut(line, []byte("\n"))
	const uid = 4 // after state, queues, timer and retransmissions
	columns := bytes.Fields(line)
	return found && len(columns) > uid && string(columns[uid]) == strconv.Itoa(os.Getuid())
}

// inTable returns an IPv4 address as the kernel's table has it.
func inTable(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Is4() {
		return "?"
	}
	ip := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}

// mayReach reports whether a target is one that sandboxes may connect to.
func (s *Service) mayReach(target string) bool {
	host, _, err := net.SplitHostPort(target)
	return err == nil && (net.ParseIP(host).IsLoopback() || slices.Contains(s.o.Targets, target))
}

// tunnel carries bytes both ways until both have ended.
func (s *Service) tunnel(b *sandbox, near net.Conn, ahead io.Reader, far net.Conn) {
	ended := make(chan struct{}, 2)
	carry := func(to net.Conn, from io.Reader, pace *bucket) {
		_, err := io.Copy(counted{paced{Writer: to, bucket: pace, ended: b.ended}, &s.relayed}, from)
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

// counted is a writer whose bytes are counted.
type counted struct {
	io.Writer
	sum *atomic.Int64
}

// Write implements io.Writer.
func (c counted) Write(data []byte) (int, error) {
	n, err := c.Writer.Write(data)
	c.sum.Add(int64(n))
	return n, err
}
