package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"siafu/graph/fault"
)

// Metrics is a beginning of metrics.jsonl: its lines up to an epoch.
type Metrics struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// MarkMetrics syncs a metrics.jsonl and takes its length and sum: a checkpoint
// must not outlive the lines that it counts.
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

// Read reads exactly these lines from a file, which may be longer. A file that
// does not begin with them is a Data fault.
func (m Metrics) Read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opResume, path, err)
	}
	if int64(len(text)) < m.Bytes {
		return nil, m.foreign(path, "it has %d bytes where the checkpoint counts %d", len(text), m.Bytes)
	}
	text = text[:m.Bytes]
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != m.SHA256 {
		return nil, m.foreign(path, "its first %d bytes are not those that the checkpoint counts", m.Bytes)
	}
	return text, nil
}

func (m Metrics) foreign(path, format string, args ...any) error {
	return fault.New(fault.Data, opResume, path, format, args...).
		Then("put back the file that the run wrote, or go on in another --out")
}
