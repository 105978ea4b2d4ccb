package ranks

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/ranks/world"
)

// checkTakeovers returns an error if a rank cannot open the dataset folder or the existing shards. Any rank
// may have to take over any part, also a spare rank, which opens no file at the start. Shards that do not
// exist yet are opened in joined.read. Collective over w.
func (c *viewSequence) checkTakeovers(w world.Comm, parts int) error {
	var paths []string
	if _, err := os.Stat(c.data); c.rank == 0 && err == nil { // else rank 0 reports the error
		folder := partition.Place{Data: c.data, Root: c.cfg.PartsDir}.Folder(partitionOptions(&c.cfg, parts))
		if paths = []string{c.data}; folder != "" {
			paths = append(paths, shard.Paths(folder, parts)...)
		}
	}
	shared, err := world.BcastBlob(w, []byte(strings.Join(paths, "\x00")), 0)
	if err != nil {
		return err
	}
	if len(shared) > 0 {
		err = opens("train", c.host, strings.Split(string(shared), "\x00"))
	}
	return agree(w, err)
}

// opens returns an error if this host cannot open a file. It does not read the files.
func opens(op, host string, paths []string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err == nil {
			f.Close()
			continue
		}
		kind := fault.IO
		if errors.Is(err, fs.ErrNotExist) {
			kind = fault.Missing
		}
		return fault.New(kind, op, path,
			"host %s cannot open it, but may have to take over parts of lost ranks: %v", host, errors.Unwrap(err)).
			Then("make the dataset and its shards readable at the same path on all hosts")
	}
	return nil
}
