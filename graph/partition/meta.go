package partition

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/graph/shard"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
)

// formatVersion is the version of the folder parts/P that this package writes and reads. Since
// version 2, ranks may number their vertices in another order than the dataset.
const formatVersion = 2

const metaName = "meta.json"

// Meta is the content of parts/P/meta.json.
type Meta struct {
	Format      int                       `json:"format"`
	Method      string                    `json:"method"`
	Order       string                    `json:"order"` // as requested; the report has the chosen order
	Seed        uint64                    `json:"seed"`
	Passes      int                       `json:"passes"`
	Slack       float64                   `json:"slack"`
	Parts       int                       `json:"parts"`
	Fingerprint string                    `json:"fingerprint"` // of the dataset that was partitioned
	Assignment  string                    `json:"assignment"`  // hash of the owners, as in each shard
	Report      *Report                   `json:"report"`
	Files       map[string]graph.FileInfo `json:"files"` // the shards
	// Checksum is the CRC-32C of the other fields, in 8 hex digits; "" from an earlier version. The
	// counts in Report determine allocations of siafu plan, which uses no counts without a checksum.
	Checksum string `json:"checksum,omitempty"`
}

// sum returns the checksum of all fields except Checksum.
func (m Meta) sum() (string, error) {
	m.Checksum = ""
	text, err := json.Marshal(m)
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))), err
}

// Find reads the Meta of the shards for the given number of ranks in the dataset folder dir. It does
// not compare the fingerprint in Meta with the dataset. Faults have kind Missing if there are no
// shards, else Data or IO.
func Find(dir string, parts int) (*Meta, error) { return find(shard.Folder(dir, parts), dir, parts) }

// FindIn is Find for the shards in a given folder.
func FindIn(folder, dir string, parts int) (*Meta, error) { return find(folder, dir, parts) }

func find(folder, dir string, parts int) (*Meta, error) {
	path := filepath.Join(folder, metaName)
	text, err := os.ReadFile(path)
	if err != nil {
		f := fault.System(op, path, err)
		if f.Kind == fault.Missing {
			f = f.Then(`run "siafu partition --parts %d %s"`, parts, dir)
		}
		return nil, f
	}
	m := new(Meta)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, again(path, "%v", err)
	}
	if m.Format != formatVersion {
		return nil, again(path, "format %d, expected %d", m.Format, formatVersion)
	}
	if sum, err := m.sum(); m.Checksum != "" && (err != nil || m.Checksum != sum) {
		return nil, again(path, "its checksum is %q, but its content has %s", m.Checksum, sum)
	}
	if m.Parts != parts || m.Report == nil || len(m.Report.Ranks) != parts {
		return nil, again(path, "it does not describe %d parts", parts)
	}
	return m, nil
}

// Serves reports whether the shards have the method and the order that o requests. An empty Method
// or Order accepts any value. An order also matches if auto selected it.
func (m *Meta) Serves(o Options) bool {
	return (o.Method == "" || o.Method == m.Method) &&
		(o.Order == "" || o.Order == m.Order || o.Order == m.Report.Order.Name)
}

// Complete returns o with all options set. Unset options get the values of m, or their defaults if
// m is nil. An order of m that order.New no longer supports becomes auto.
func (m *Meta) Complete(o Options) Options {
	if m != nil && o.Method == "" {
		o.Method, o.Seed, o.Passes, o.Slack = m.Method, m.Seed, m.Passes, m.Slack
	}
	if m != nil && o.Order == "" && order.Check(m.Order) == nil {
		o.Order = m.Order
	}
	return o.withDefaults()
}

// again returns a fault of kind Data with the remedy to partition again.
func again(path, format string, args ...any) error {
	return fault.New(fault.Data, op, path, format, args...).Then(`run "siafu partition" again`)
}

// write writes m to meta.json in the folder dir. No other process may use the folder yet.
func (m *Meta) write(dir string) error {
	path := filepath.Join(dir, metaName)
	var err error
	if m.Checksum, err = m.sum(); err != nil {
		return fault.System(op, path, err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fault.System(op, path, err)
	}
	return durable.WriteFile(op, path, append(text, '\n'), durable.Perm)
}

// replaceable returns a fault if the shard folder contains files that siafu did not write.
func replaceable(final string) error {
	info, err := os.Lstat(final)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	foreign := final
	if err == nil && info.IsDir() {
		foreign, err = graph.Shards().Foreign(final)
	}
	if err != nil {
		return fault.System(op, final, err)
	}
	if foreign != "" {
		return inventory.Refusal(op, foreign)
	}
	return nil
}
