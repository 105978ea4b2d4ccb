package hosts

import "fmt"

// burstTime is the time for which a link may exceed its rate: long enough for the kernel's
// timers, short compared with an exchange of rows.
const burstTime = 1e-3

// leastBurst is the size of a few of the kernel's largest packets.
const leastBurst = 128 << 10

// Shape limits the rate of every link, in bytes per second and direction.
func (h *Hosts) Shape(rate float64) error {
	for i := range h.count {
		if err := shape([]string{"tc"}, h.Name(i), rate); err != nil { // to the host
			return err
		}
		if err := shape([]string{"tc", "-n", h.Name(i)}, device, rate); err != nil { // from it
			return err
		}
	}
	return nil
}

// shape sets the sending rate of a device.
func shape(tc []string, dev string, rate float64) error {
	return command(append(tc, "qdisc", "replace", "dev", dev, "root", "tbf",
		"rate", fmt.Sprintf("%.0fbit", 8*rate), "burst", fmt.Sprintf("%.0f", max(rate*burstTime, leastBurst)), "latency", "50ms")...)
}
