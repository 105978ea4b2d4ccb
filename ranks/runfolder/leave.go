package runfolder

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// leavingFile has a line for each host whose ranks must leave the run.
const leavingFile = "leaving.txt"

// Leave adds hosts to those whose ranks must leave a run that has not ended.
func Leave(run string, hosts []string) error {
	if ReadMarker(run) == nil {
		return fault.New(fault.Usage, "leave", run, "it is not a run folder").Then("name the --out of a run")
	}
	if Ended(run) != nil {
		return fault.New(fault.Usage, "leave", run, "the run has ended")
	}
	path := filepath.Join(run, leavingFile)
	f, err := durable.OpenInPlace("leave", path, os.O_APPEND)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(strings.Join(hosts, "\n") + "\n"); err != nil {
		f.Close()
		return fault.System("leave", path, err)
	}
	if err := f.Close(); err != nil {
		return fault.System("leave", path, err)
	}
	return nil
}

// ForgetLeaving removes the requests of earlier processes of the run.
func (f *Folder) ForgetLeaving() error {
	path := filepath.Join(f.dir, leavingFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.System(op, path, err)
	}
	return nil
}

// LeavingBytes returns the length of the list of hosts that must leave a run.
func LeavingBytes(run string) int {
	text, _ := os.ReadFile(filepath.Join(run, leavingFile))
	return len(text)
}

// Leaves reports whether the ranks of a host must leave a run. The first bytes of the list are ignored:
// they are older than the ranks.
func Leaves(run, host string, older int) bool {
	text, err := os.ReadFile(filepath.Join(run, leavingFile))
	if err != nil {
		return false
	}
	text = text[min(older, len(text)):]
	var hosts []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		hosts = append(hosts, strings.TrimSpace(lines.Text()))
	}
	return slices.Contains(hosts, host)
}
