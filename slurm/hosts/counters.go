package hosts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"siafu/internal/fault"
)

// Counters reads the byte counters of all hosts' network interfaces.
type Counters struct{ devices []*os.File } // a host's /proc/net/dev

// Counters opens the counters of every host. The files show the devices of the namespace in
// which they are opened, and only the link of the namespace is counted, not its loopback device.
func (h *Hosts) Counters() (*Counters, error) {
	c := &Counters{}
	for i := range h.count {
		if err := h.within(i, func() error {
			f, err := os.Open("/proc/thread-self/net/dev")
			if err == nil {
				c.devices = append(c.devices, f)
			}
			return err
		}); err != nil {
			c.Close()
			return nil, fault.System(op, h.Name(i), err)
		}
	}
	return c, nil
}

// Sent returns the bytes that the interfaces of all hosts have sent since the hosts exist,
// with the headers of packets. A packet that the kernel splits later has one header.
func (c *Counters) Sent() (sum int64, err error) {
	for _, f := range c.devices {
		text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil {
			return 0, fault.System(op, f.Name(), err)
		}
		n, err := sentBytes(text)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Close closes the files.
func (c *Counters) Close() {
	for _, f := range c.devices {
		f.Close()
	}
}

// sentColumn is the column of sent bytes after the name of a device in /proc/net/dev.
const sentColumn = 8

// sentBytes returns the sent bytes of a host's link in the text of /proc/net/dev.
func sentBytes(text []byte) (int64, error) {
	for line := range bytes.Lines(text) {
		name, numbers, _ := bytes.Cut(line, []byte(":"))
		if string(bytes.TrimSpace(name)) != device {
			continue
		}
		if words := bytes.Fields(numbers); len(words) > sentColumn {
			if n, err := strconv.ParseInt(string(words[sentColumn]), 10, 64); err == nil {
				return n, nil
			}
		}
	}
	return 0, fault.System(op, "/proc/net/dev", fmt.Errorf("no counter of sent bytes for device %s", device))
}
