package hosts

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// Measured is the measured performance of a link.
type Measured struct {
	Bandwidth float64 `json:"bandwidth_bytes_per_second"` // of a stream over TCP
	Latency   float64 `json:"latency_seconds"`            // half of the median round trip of 8 bytes
}

// Limits of a measurement.
const (
	streamTime  = 300 * time.Millisecond
	pingPongs   = 200
	streamChunk = 256 << 10
)

// Measure times messages from one host to another.
func (h *Hosts) Measure(from, to int) (Measured, error) {
	var m Measured
	a, b, err := h.connect(from, to)
	if err != nil {
		return m, fault.System(op, "", err)
	}
	defer a.Close()
	defer b.Close()
	if m.Latency, err = pingPong(a, b); err == nil {
		m.Bandwidth, err = stream(a, b)
	}
	if err != nil {
		return m, fault.System(op, "", err)
	}
	return m, nil
}

// connect makes a connection between two hosts.
func (h *Hosts) connect(from, to int) (a, b net.Conn, err error) {
	return pair(h.Address(to), func(do func() error) error { return h.within(from, do) },
		func(do func() error) error { return h.within(to, do) })
}

// Loopback returns the bytes per second of a stream over TCP on this machine's loopback device.
func Loopback() (rate float64, err error) {
	here := func(do func() error) error { return do() }
	a, b, err := pair("127.0.0.1", here, here)
	if err == nil {
		defer a.Close()
		defer b.Close()
		rate, err = stream(a, b)
	}
	if err != nil {
		return 0, fault.System(op, "", err)
	}
	return rate, nil
}

// pair makes a connection to an address. dial and listen run the creation of its ends.
func pair(address string, dial, listen func(func() error) error) (a, b net.Conn, err error) {
	var listener net.Listener
	if err := listen(func() (err error) {
		listener, err = net.Listen("tcp", address+":0")
		return err
	}); err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if err := dial(func() (err error) {
		a, err = net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second)
		return err
	}); err != nil {
		return nil, nil, err
	}
	if b, err = listener.Accept(); err != nil {
		a.Close()
	}
	return a, b, err
}

// within runs do on a thread in host i's namespace. Sockets remain in the namespace in which they
// are created. The thread then ends, and is never reused.
func (h *Hosts) within(i int, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			fd, err := unix.Open(filepath.Join(namespaces, h.Name(i)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return err
			}
			return do()
		}()
	}()
	return <-done
}

// pingPong returns half of the median round-trip time of 8 bytes.
func pingPong(a, b net.Conn) (float64, error) {
	failed := make(chan error, 1)
	go func() {
		_, err := io.CopyN(b, b, 8*pingPongs)
		failed <- err
	}()
	var word [8]byte
	var times []time.Duration
	for range pingPongs {
		start := time.Now()
		if _, err := a.Write(word[:]); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(a, word[:]); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds() / 2, <-failed
}

// stream returns the received bytes per second. It ignores the first third of the time, in which
// the connection speeds up.
func stream(a, b net.Conn) (float64, error) {
	failed := make(chan error, 1)
	go func() {
		chunk, begin := make([]byte, streamChunk), time.Now()
		for time.Since(begin) < streamTime {
			if _, err := a.Write(chunk); err != nil {
				failed <- err
				return
			}
		}
		failed <- a.(*net.TCPConn).CloseWrite()
	}()
	chunk, begin := make([]byte, streamChunk), time.Now()
	var early, all int64
	var since time.Time
	for {
		n, err := b.Read(chunk)
		all += int64(n)
		if since.IsZero() && time.Since(begin) > streamTime/3 {
			early, since = all, time.Now()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	return float64(all-early) / time.Since(since).Seconds(), <-failed
}
