package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"siafu/internal/fault"
)

// Metrics identifies a prefix of metrics.jsonl: its lines up to an epoch.
type Metrics struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// MarkMetrics syncs a metrics.jsonl and records its length and checksum. The lines must be
// durable before the checkpoint that refers to them.
func MarkMetrics(path string) (Metrics, error) {
	f, err := os.Open(path)
	if err != nil {
		return Metrics{}, fault.System(opSave, path, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return Metrics{}, fault.System(opSave, path, err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return Metrics{}, fault.System(opSave, path, err)
	}
	return Metrics{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Verify checks that a file starts with these lines. It may be longer. Another file is a fault of kind Data.
func (m Metrics) Verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fault.System(opResume, path, err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, m.Bytes))
	switch {
	case err != nil:
		return fault.System(opResume, path, err)
	case n < m.Bytes:
		return m.foreign(path, "it has %d bytes, but the checkpoint records %d", n, m.Bytes)
	case hex.EncodeToString(sum.Sum(nil)) != m.SHA256:
		return m.foreign(path, "its first %d bytes differ from those that the checkpoint records", m.Bytes)
	}
	return nil
}

func (m Metrics) foreign(path, format string, args ...any) error {
	return fault.New(fault.Data, opResume, path, format, args...).
		Then("restore the file that the run wrote, or continue in another --out")
}
