package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"siafu/internal/fault"
)

const op = "plan"

// number splits s into its leading number and the unit after it.
func number(s string) (float64, string, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	v, err := strconv.ParseFloat(s[:end], 64)
	return v, strings.ToLower(strings.TrimSpace(s[end:])), err == nil && v > 0 && !math.IsInf(v, 0)
}

// Bandwidth parses a rate such as 10gbit or 200Mbit/s and returns bytes/s.
func Bandwidth(text string) (float64, error) {
	v, unit, ok := number(text)
	scale, known := map[string]float64{"kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}[strings.TrimSuffix(unit, "/s")]
	if !ok || !known {
		return 0, fault.New(fault.Usage, op, "", "a bandwidth of %q", text).Then("write a number with kbit, mbit, gbit or tbit, such as 10gbit")
	}
	return v * scale / 8, nil
}

// Bytes parses a size such as 8GB or 1.5GiB.
func Bytes(text string) (int64, error) {
	v, unit, ok := number(text)
	scale, known := map[string]float64{
		"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}[unit]
	if !ok || !known || v*scale >= 1<<62 {
		return 0, fault.New(fault.Usage, op, "", "%q of memory", text).Then("write a number with MB, GB, MiB or GiB, such as 8GB")
	}
	return int64(v * scale), nil
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
