package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
)

// Dir is the folder below a run folder that holds its checkpoints.
const Dir = "checkpoints"

const prefix = "epoch-"

func folderName(epoch int) string { return fmt.Sprintf("%s%06d", prefix, epoch) }

// epochOf returns the epoch of a folder name, -1 if it is not the name of a checkpoint.
func epochOf(name string) int {
	epoch, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
	if err != nil || epoch < 0 || folderName(epoch) != name {
		return -1
	}
	return epoch
}

// entry is the folder of a checkpoint, possibly damaged.
type entry struct {
	epoch int
	path  string
}

// list returns the checkpoints in a folder, the newest first, and none if the folder is
// missing.
func list(dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.System(opResume, dir, err)
	}
	var found []entry
	for _, n := range names {
		if epoch := epochOf(n.Name()); epoch >= 0 {
			found = append(found, entry{epoch, filepath.Join(dir, n.Name())})
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Compare(b.epoch, a.epoch) })
	return found, nil
}

// hidden matches the names of checkpoints that are being written or removed (package scratch).
// Its group is the checkpoint's own name.
var hidden = inventory.Pattern(`\.(` + prefix + `\d+)` + scratch.Suffix + `(?:\.old)?`)
