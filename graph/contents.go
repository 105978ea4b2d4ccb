package graph

import (
	"maps"
	"os"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
)

// PartsFile is the file of a partition that was imported with the dataset.
const PartsFile = "dorylus.parts"

// Shards returns the files that siafu writes into the folder of a dataset's shards for one
// number of ranks.
func Shards() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(`(\d+\.part|meta\.json)(` + scratch.Suffix + `)?`)}}
}

// Partitionings returns the entries that siafu writes into a folder of partitionings: the shards
// for each number of ranks, and shards for the same number from other partition settings.
func Partitionings() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(partsName + `|\.` + partsName + scratch.Suffix + `(\.old)?`), In: Shards()}}
}

const partsName = `\d+(-[0-9a-z]+-[a-z]+-\d+)?`

// contents returns the entries that siafu writes into the folder of this dataset. A valid
// checksum in meta.json proves that siafu made the folder.
func (m *Meta) contents() inventory.Folder {
	names := append(slices.Sorted(maps.Keys(m.Files)), metaFile, PartsFile)
	return append(inventory.Files(names...), inventory.Entry{
		Name: inventory.Pattern("parts"),
		In:   Partitionings(),
	})
}

// CheckTarget returns a fault if Write may not write a dataset folder to dir. The folder must be
// missing or empty. With force, it may also be a dataset folder in which siafu wrote every file.
func CheckTarget(dir string, force bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case os.IsNotExist(err) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fault.System(opWrite, dir, err)
	case !force:
		return fault.New(fault.Usage, opWrite, dir, "it exists already").Then("choose another folder, or replace it with --force")
	}
	m, err := ReadMeta(dir)
	if info, failed := os.Lstat(dir); err != nil || failed != nil || !info.IsDir() {
		return fault.New(fault.Usage, opWrite, dir, "it is not a dataset folder, so it is not replaced").Then("choose another folder")
	}
	foreign, err := m.contents().Foreign(dir)
	if err != nil {
		return fault.System(opWrite, dir, err)
	}
	if foreign != "" {
		return inventory.Refusal(opWrite, foreign)
	}
	return nil
}
