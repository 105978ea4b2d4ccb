package forecast

import (
	"math"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/graphwork"
)

// streamable are the terms that tasks read in order, the best one to store in a file first: one that
// the smallest number of passes reads and none writes.
var streamable = []string{Kept, model.Streamed, graphwork.Trained, graphwork.Reversed, engine.VertexIDs,
	graphwork.CodedEdges, graphwork.SliceSums}

// window is the maximal memory for the pages of files that tasks are using: some intervals of each thread.
const window int64 = 96 << 20

// Resident returns the memory that a process with this rank cannot do without: all but most pages of
// files.
func (m Memory) Resident() int64 {
	return size.Sum(m.beside(), min(window, size.Sum(m.Of(Mapped), m.Of(Disk))))
}

// beside returns the memory of a process with this rank, without pages of files.
func (m Memory) beside() int64 { return size.Sum(m.Peak()-m.Of(Mapped), Program) }

// Unlimited returns the memory of a process with this rank that reads nothing from files in an epoch.
func (m Memory) Unlimited() int64 { return size.Sum(m.Peak(), m.Of(Disk), Program) }

// stream moves terms to the scratch file until the rest fits in the limit or no streamable term is
// left.
func (m Memory) stream(limit int64) Memory {
	for _, name := range streamable {
		for _, kind := range []Kind{Array, Scratch} {
			i := slices.IndexFunc(m, func(t Term) bool { return t.Name == name && t.Kind == kind })
			if i >= 0 && m.Resident() > limit {
				m[i].Kind = Disk
			}
		}
	}
	return m
}

// numbersOfSlices are the numbers of slices that FitSlices tries.
var numbersOfSlices = []int{1, 2, 3, 4, 6, 8, 12, 16}

// FitSlices returns the smallest number of slices for c whose resident memory is within the limit. It
// returns c.Slices if that is set, and the number that needs least if none suffices. resident returns the memory of a
// configuration, or an error if slices do not suit it.
func FitSlices(c config.Config, limit int64, resident func(c config.Config) (int64, error)) int {
	if c.Slices > 0 || c.Scratch == "" {
		return c.Slices
	}
	try, best, least := c, c.Slices, int64(math.MaxInt64)
	for _, try.Slices = range numbersOfSlices {
		need, err := resident(try)
		if err != nil {
			break
		}
		if need < least {
			best, least = try.Slices, need
		}
		if need <= limit {
			break
		}
	}
	return best
}

// Streamed returns the names of the terms in the scratch file.
func (m Memory) Streamed() (names []string) {
	for _, t := range m {
		if t.Kind == Disk && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// CheckDisk returns a fault of kind IO if a folder has no space for the given bytes.
func CheckDisk(op, dir string, need int64) error {
	free, err := host.FreeDisk(dir)
	if err != nil {
		return fault.System(op, dir, err)
	}
	if free < need {
		return fault.New(fault.IO, op, dir,
			"the scratch files of this host's ranks need %d MB, but the file system has %d MB", (need+1e6-1)/1e6, free/1e6).
			Then("free disk space, choose another folder, or raise --memory")
	}
	return nil
}
