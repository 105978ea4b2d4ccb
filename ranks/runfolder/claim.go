package runfolder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
)

// FromMemory is the source of a resumption by another rank of the same start, in the log.
const FromMemory = "the memory of a rank"

// LaunchVariable names the environment variable with the id of a launch. All attempts of a
// launch, and all starts of a batch script, have the same id. A run folder with that id was
// made by an earlier attempt.
const LaunchVariable = "SIAFU_LAUNCH"

// kind is the kind in the marker of a run folder.
const kind = "run folder"

// own lists the files that this package writes into a run folder.
var own = append(inventory.Files(markerFile, configFile, metricsFile, summaryFile, modelFile, KnownFile, ScriptFile, logFile, eventsFile,
	leavingFile, invitationFile), bare...)

// bare lists what a folder without a marker may contain after a claim: the lock, an unfinished
// marker, and shards that could not be stored next to the dataset.
var bare = inventory.Folder{
	{Name: inventory.Pattern("parts"), In: graph.Partitionings()},
	{Name: inventory.Pattern(lockFile), Proof: isLock},
	{Name: inventory.Pattern(regexp.QuoteMeta(markerFile) + scratch.Suffix)},
}

// Claim has the requirements of a run for its run folder.
type Claim struct {
	Out    string           // the folder; empty: runs/NAME-DATE-TIME
	Name   string           // of the dataset
	Launch string           // id of the launch; empty: no launch
	Wait   time.Duration    // maximal wait for another process that writes the folder
	Others inventory.Folder // files that other packages write into the folder
}

// Folder is a claimed run folder. Begin or Continue start to write it. No other process can claim
// it until Close.
type Folder struct {
	dir      string
	launch   string
	contents inventory.Folder
	marker   *inventory.Marker // of the existing run; nil: the folder is empty
	lock     *Lock
	made     []string     // folders that the claim has created, the deepest last
	written  bool         // Begin or Continue was called
	early    bytes.Buffer // log lines before the log file exists
	metrics  *os.File
	log      *os.File

	eventsFile *os.File
	events     *eventWriter // nil: no event file
}

// Take claims the run folder. The folder must not exist, or be empty, or have a marker of siafu.
// Any other folder, and one that another process writes, is a fault of kind Usage. Only the lock
// changes before Begin or Continue, and Close restores the previous state.
func (c Claim) Take() (*Folder, error) {
	f := &Folder{dir: c.Out, launch: c.Launch, contents: slices.Concat(own, c.Others)}
	if c.Out == "" {
		if err := f.invent(c.Name); err != nil {
			return nil, err
		}
	}
	if err := f.acquire(c.Wait); err != nil {
		f.undo()
		return nil, err
	}
	// The folder may have changed before it was locked.
	if err := f.recognise(); err != nil {
		f.undo()
		return nil, err
	}
	if err := unix.Access(f.dir, unix.W_OK|unix.X_OK); err != nil {
		f.undo()
		return nil, fault.System(op, f.dir, err)
	}
	return f, nil
}

// invent creates a folder with a new name.
func (f *Folder) invent(name string) error {
	base := filepath.Join("runs", name+"-"+time.Now().Format("20060102-150405"))
	if err := f.mkdirAll("runs"); err != nil {
		return err
	}
	for i := 1; ; i++ {
		f.dir = base
		if i > 1 {
			f.dir = fmt.Sprintf("%s-%d", base, i)
		}
		err := os.Mkdir(f.dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fault.System(op, f.dir, err)
		}
		f.made = append(f.made, f.dir)
		return nil
	}
}

// acquire creates the folder if it is missing, and locks it. Another process that releases its
// claim may remove the folder before it is locked. acquire then tries again.
func (f *Folder) acquire(wait time.Duration) (err error) {
	for range 100 {
		if err = f.recognise(); err != nil {
			return err
		}
		if err = f.mkdirAll(f.dir); err != nil {
			return err
		}
		if f.lock, err = Acquire(f.dir, f.launch, wait); err == nil || fault.KindOf(err) != fault.Missing {
			return err
		}
	}
	return err
}

// mkdirAll creates a folder and its missing parents, and records them in f.made.
func (f *Folder) mkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := f.mkdirAll(parent); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o755)
	switch {
	case err == nil:
		f.made = append(f.made, dir)
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist): // another process creates or removes it
		return nil
	}
	return fault.System(op, dir, err)
}

// recognise reads the marker. A folder without a marker must contain nothing but the remains of a
// claim by a killed process.
func (f *Folder) recognise() error {
	f.marker = ReadMarker(f.dir)
	if f.marker != nil {
		link, err := f.contents.Link(f.dir)
		if err != nil {
			return fault.System(op, f.dir, err)
		}
		if link != "" {
			return fault.New(fault.Usage, op, link, "it is a symbolic link, and a run writes only into its own folder").
				Then("replace the link by the file or folder itself")
		}
		return nil
	}
	foreign, err := bare.Foreign(f.dir)
	if err != nil {
		return fault.System(op, f.dir, err)
	}
	if foreign != "" { // another process may have written the marker meanwhile
		f.marker = ReadMarker(f.dir)
	}
	switch {
	case foreign == "" || f.marker != nil:
		return nil
	case IsRun(f.dir):
		return fault.New(fault.Usage, op, f.dir,
			"it looks like a run folder, but has no %s; an older siafu may have written it", markerFile).
			Then("choose another --out (and --init %s to start from its weights), or move it away", filepath.Join(f.dir, modelFile))
	}
	return fault.New(fault.Usage, op, f.dir, "it contains %s and is not a run folder of siafu", filepath.Base(foreign)).
		Then("choose another --out")
}

// ReadMarker returns the marker of the run folder dir, or nil if siafu did not create the folder.
func ReadMarker(dir string) *inventory.Marker {
	return inventory.ReadMarker(filepath.Join(dir, markerFile), kind)
}

// Marker returns the marker of the run that was in the folder when it was claimed, or nil if the
// folder was empty.
func (f *Folder) Marker() *inventory.Marker { return f.marker }

// HasEnded reports whether the existing run has a summary.
func (f *Folder) HasEnded() bool { return exists(filepath.Join(f.dir, summaryFile)) }

// Warning returns a warning for the user about the lock, or an empty text.
func (f *Folder) Warning() string { return f.lock.Warning }

// Replaceable returns a fault if the folder contains a file that siafu has not written.
func (f *Folder) Replaceable() error {
	foreign, err := f.contents.Foreign(f.dir)
	if err != nil {
		return fault.System(op, f.dir, err)
	}
	if foreign != "" {
		return inventory.Refusal(op, foreign)
	}
	return nil
}

// Begin starts a run with the inputs of. It removes the files of an older run. metrics has the
// lines of epochs from a checkpoint in another folder.
//
// If the process is killed during Begin, the folder has the marker of the older or of the new
// run: it is never without a marker.
func (f *Folder) Begin(of map[string]string, metrics Lines) error {
	f.written = true
	if err := f.Replaceable(); err != nil {
		return err
	}
	// Remove the summary first: a partly removed run must not count as ended.
	if err := os.Remove(filepath.Join(f.dir, summaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.System(op, f.dir, err)
	}
	if err := f.contents.Clear(op, f.dir, markerFile, lockFile); err != nil {
		return err
	}
	m := inventory.NewMarker(kind)
	if err := f.mark(m, of); err != nil {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	return metrics.copyTo(f.metrics)
}

// Continue opens the folder of a resumed run. It truncates the metrics to the given number of
// bytes, and removes the summary and unfinished files.
func (f *Folder) Continue(of map[string]string, metrics int64) error {
	f.written = true
	if err := f.reopen(); err != nil {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	if err := f.metrics.Truncate(metrics); err != nil {
		return fault.System(op, f.metrics.Name(), err)
	}
	return f.mark(*f.marker, of)
}

// reopen removes the summary and unfinished files.
func (f *Folder) reopen() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fault.System(op, f.dir, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() != summaryFile && !isTemporary(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(f.dir, e.Name())); err != nil {
			return fault.System(op, filepath.Join(f.dir, e.Name()), err)
		}
	}
	return nil
}

// mark writes the marker with the id of this launch.
func (f *Folder) mark(m inventory.Marker, of map[string]string) error {
	m.Launch, m.Of = f.launch, of
	f.marker = &m
	return durable.WriteFile(op, filepath.Join(f.dir, markerFile), m.Encode(), durable.Perm)
}

// open opens the metrics and the log, which are appended to, and makes all names durable.
func (f *Folder) open() error {
	for _, x := range []struct {
		name string
		to   **os.File
	}{{metricsFile, &f.metrics}, {logFile, &f.log}} {
		path := filepath.Join(f.dir, x.name)
		file, err := durable.OpenInPlace(op, path, os.O_APPEND)
		if err != nil {
			return err
		}
		*x.to = file
	}
	if _, err := f.log.Write(f.early.Bytes()); err != nil {
		return fault.System(op, f.log.Name(), err)
	}
	for _, dir := range f.made {
		if err := durable.Sync(op, filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return durable.Sync(op, f.dir)
}

// Close closes open files and releases the claim. If nothing was written, the folder is
// unchanged.
func (f *Folder) Close() error {
	if f == nil || f.lock == nil {
		return nil
	}
	if !f.written {
		f.undo()
		return nil
	}
	_ = os.Remove(filepath.Join(f.dir, invitationFile))
	var first error
	for _, file := range []*os.File{f.metrics, f.log, f.eventsFile} {
		if file == nil {
			continue
		}
		if err := file.Close(); err != nil && first == nil {
			first = fault.System(op, file.Name(), err)
		}
	}
	if err := f.lock.Release(); err != nil && first == nil {
		first = fault.System(op, f.dir, err)
	}
	f.lock = nil
	return first
}

// undo restores the state before the claim.
func (f *Folder) undo() {
	if f.lock != nil {
		f.lock.Undo()
		f.lock = nil
	}
	for _, dir := range slices.Backward(f.made) {
		_ = os.Remove(dir) // fails if another process uses it meanwhile
	}
}
