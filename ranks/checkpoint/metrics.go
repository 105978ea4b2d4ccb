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

// Read returns exactly these lines of a file, which may be longer. If the file does not
// start with them, the fault has kind Data.
func (m Metrics) Read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opResume, path, err)
	}
	if int64(len(text)) < m.Bytes {
		return nil, m.foreign(path, "it has %d bytes, but the checkpoint records %d", len(text), m.Bytes)
	}
	text = text[:m.Bytes]
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != m.SHA256 {
		return nil, m.foreign(path, "its first %d bytes differ from those that the checkpoint records", m.Bytes)
	}
	return text, nil
}

func (m Metrics) foreign(path, format string, args ...any) error {
	return fault.New(fault.Data, opResume, path, format, args...).
		Then("restore the file that the run wrote, or continue in another --out")
}
