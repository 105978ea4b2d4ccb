package plan

import (
	"fmt"
	"strings"
	"time"

	"siafu/internal/fault"
	"siafu/internal/size"
)

const op = "plan"

// Bandwidth parses a rate such as 10gbit or 200Mbit/s and returns bytes/s.
func Bandwidth(text string) (float64, error) {
	v, unit, ok := size.Number(text)
	scale, known := map[string]float64{"kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}[strings.TrimSuffix(unit, "/s")]
	if !ok || !known {
		return 0, fault.New(fault.Usage, op, "", "a bandwidth of %q", text).
			Then("write a number with kbit, mbit, gbit or tbit, such as 10gbit")
	}
	return v * scale / 8, nil
}

// DiskRate parses a rate such as 1GB or 200MB/s in bytes a second.
func DiskRate(text string) (rate float64, ok bool) {
	bytes, ok := size.Parse(strings.TrimSuffix(text, "/s"))
	return float64(bytes), ok
}

// Bytes parses a size such as 8GB, 380M or 1.5GiB.
func Bytes(text string) (int64, error) {
	bytes, ok := size.Parse(text)
	if !ok {
		return 0, fault.New(fault.Usage, op, "", "%q of memory", text).Then("write a number of bytes such as 8GB, 380M or 2GiB")
	}
	return bytes, nil
}

// latency parses a duration of at least 0.
func latency(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fault.New(fault.Usage, op, "", "a latency of %q", text).Then("write a duration such as 50us")
	}
	return d.Seconds(), nil
}

// megabytes formats bytes as MB, small values with one decimal.
func megabytes(bytes int64) string {
	mb := float64(bytes) / 1e6
	switch {
	case mb >= 100:
		return fmt.Sprintf("%.0f", mb)
	case mb >= 1:
		return fmt.Sprintf("%.1f", mb)
	}
	return fmt.Sprintf("%.3f", mb)
}
