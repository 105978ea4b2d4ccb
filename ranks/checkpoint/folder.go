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

	"siafu/graph/fault"
	"siafu/ranks/owner"
)

// Dir is the folder below a run folder that holds its checkpoints.
const Dir = "checkpoints"

const prefix = "epoch-"

// folderName is that of an epoch's checkpoint.
func folderName(epoch int) string { return fmt.Sprintf("%s%06d", prefix, epoch) }

// epochOf is the epoch that a name stands for, -1 where it stands for none.
func epochOf(name string) int {
	epoch, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
	if err != nil || epoch < 0 || folderName(epoch) != name {
		return -1
	}
	return epoch
}

// entry is a checkpoint that may be damaged.
type entry struct {
	epoch int
	path  string
}

// list are the checkpoints in a folder, the newest first; none where there is
// no folder.
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

// A hidden folder is a checkpoint that is being written ("new") or removed
// ("old"). Its name says by whom:
//
//	.epoch-000020.new-PID-START-HOST
func hiddenName(epoch int, what string, o owner.Process) string {
	return fmt.Sprintf(".%s.%s-%d-%d-%s", folderName(epoch), what, o.PID, o.Start, o.Host)
}

// ownerOf reads a hidden name; ok is false for any other.
func ownerOf(name string) (o owner.Process, ok bool) {
	epoch, rest, _ := strings.Cut(strings.TrimPrefix(name, "."), ".")
	part := strings.SplitN(rest, "-", 4)
	if len(part) != 4 || epochOf(epoch) < 0 {
		return o, false
	}
	pid, errPID := strconv.Atoi(part[1])
	start, errStart := strconv.ParseInt(part[2], 10, 64)
	o = owner.Process{PID: pid, Start: start, Host: part[3]}
	return o, errPID == nil && errStart == nil && name == hiddenName(epochOf(epoch), part[0], o)
}
