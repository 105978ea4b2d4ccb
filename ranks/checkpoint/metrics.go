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

// Restore leaves exactly these lines in the file dst, from those of src, which
// may be the same file and longer. A src that does not begin with them is a
// Data fault, and dst stays as it is.
func (m Metrics) Restore(src, dst string) error {
	text, err := os.ReadFile(src)
	if err != nil {
		return fault.System(opResume, src, err)
	}
	if int64(len(text)) < m.Bytes {
		return m.foreign(src, "it has %d bytes where the checkpoint counts %d", len(text), m.Bytes)
	}
	sum := sha256.Sum256(text[:m.Bytes])
	if hex.EncodeToString(sum[:]) != m.SHA256 {
		return m.foreign(src, "its first %d bytes are not those that the checkpoint counts", m.Bytes)
	}
	if same(src, dst) {
		err = os.Truncate(dst, m.Bytes)
	} else {
		err = os.WriteFile(dst, text[:m.Bytes], 0o644)
	}
	if err != nil {
		return fault.System(opResume, dst, err)
	}
	return nil
}

func (m Metrics) foreign(path, format string, args ...any) error {
	return fault.New(fault.Data, opResume, path, format, args...).
		Then("put back the file that the run wrote, or go on in another --out")
}

// same tells whether two names are of one file.
func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
