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
	"time"
)

// RelayVariable is the environment variable of a sandbox with limited bandwidth. It contains the
// HOST:PORT of the relay for all connections of the sandbox.
const RelayVariable = "SIAFU_RELAY"

const dialTime = 10 * time.Second

// openRelay starts the relay of a sandbox.
//
// Design note: each sandbox has its own port, which identifies the sandbox. The kernel tells which
// user opened a connection. A token would have to be passed to every part of the function that
// opens connections.
func (s *Service) openRelay(b *sandbox) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.relay = &http.Server{ReadHeaderTimeout: dialTime,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.connect(w, r, b) })}
	b.relayAddress = l.Addr().String()
	go func() { _ = b.relay.Serve(l) }() // until it is closed
	return nil
}

func (b *sandbox) closeRelay() {
	if b.relay != nil {
		_ = b.relay.Close()
	}
}

// connect handles HTTP CONNECT for a sandbox. It connects to a target, at the rate of the sandbox's
// network. The connection ends with either side, or with the sandbox.
func (s *Service) connect(w http.ResponseWriter, r *http.Request, b *sandbox) {
	switch {
	case !ours(r.RemoteAddr, b.relayAddress):
		s.refuse(w, http.StatusForbidden, "InvalidSandbox", "the relay belongs to another user")
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

// ours reports whether a process of this user opened the connection between two loopback addresses.
// The kernel's table has one line for each side.
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

// inTable returns an IPv4 address in the format of the kernel's table.
func inTable(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Is4() {
		return "?"
	}
	ip := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}

func (s *Service) mayReach(target string) bool {
	host, _, err := net.SplitHostPort(target)
	return err == nil && (net.ParseIP(host).IsLoopback() || slices.Contains(s.o.Targets, target))
}

func (s *Service) tunnel(b *sandbox, near net.Conn, ahead io.Reader, far net.Conn) {
	ended := make(chan struct{}, 2)
	carry := func(to net.Conn, from io.Reader, pace *bucket) {
		_, err := io.Copy(paced{Writer: to, bucket: pace, ended: b.ended, written: &s.relayed}, from)
		if end, ok := to.(*net.TCPConn); !ok || err != nil || end.CloseWrite() != nil {
			_, _ = near.Close(), far.Close() // end the other direction too
		}
		ended <- struct{}{}
	}
	go carry(far, ahead, b.out)
	go carry(near, far, b.in)
	for range 2 {
		select {
		case <-ended:
		case <-b.ended:
			return // the deferred calls close both connections
		}
	}
}
