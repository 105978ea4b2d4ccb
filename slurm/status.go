package slurm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/runfolder"
)

// Phases of a run.
const (
	Queued    = "queued"    // waits for its first start
	Running   = "running"   //
	Requeued  = "requeued"  // waits for its next start
	Done      = "done"      //
	Diverged  = "diverged"  // its weights have diverged
	Failed    = "failed"    // the job has ended, but not the run
	Cancelled = "cancelled" // the job was cancelled
	Stopped   = "stopped"   // no longer written; the batch system has no record of a job that could give the reason
	Damaged   = "damaged"   // its files are unreadable
	Absent    = "absent"    // no run of this name exists
)

// Status is the state of a run.
type Status struct {
	Run      string
	Phase    string
	Job      string // number and state of the job, empty if there is none
	Progress runfolder.Progress
	Begun    bool  // the run folder exists
	Err      error // why the run is damaged or absent
}

// Watch finds runs and determines their status.
type Watch struct {
	Queue func(scheduler, job string) ([]Entry, error)
	Now   time.Time
}

// job is the job of a run.
type job struct {
	record Record
	task   int // of an array; -1: no array
}

// All returns the status of the named runs. A name is a run folder, a folder of runs or the number of
// a job. Without names, All returns all runs below runs/. The list includes unreadable runs with
// their faults. The error then has the kind of the first fault.
func (w Watch) All(names []string) ([]Status, error) {
	if len(names) == 0 {
		names = []string{"runs"}
	}
	var list []Status
	for _, name := range names {
		list = append(list, w.named(name)...)
	}
	return list, firstFault(list)
}

// firstFault returns the error of a list with unreadable runs.
func firstFault(list []Status) error {
	var first error
	damaged := 0
	for _, s := range list {
		if s.Err != nil {
			damaged++
			first = cmp.Or(first, s.Err)
		}
	}
	if damaged < 2 {
		return first
	}
	return &fault.Error{Op: "status", Kind: fault.KindOf(first),
		Detail: fmt.Sprintf("%d of %d runs are unreadable; the first", damaged, len(list)), Err: first}
}

// named returns the status of the runs with one name.
func (w Watch) named(name string) []Status {
	jobs := records(name)
	folders, list := find(name, jobs)
	for _, dir := range folders {
		list = append(list, w.one(dir, jobs))
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Run, b.Run) })
	return list
}

// one returns the status of a run. jobs has the known jobs by run folder.
func (w Watch) one(dir string, jobs map[string]job) Status {
	s := Status{Run: dir, Phase: Queued}
	if runfolder.IsRun(dir) {
		p, err := runfolder.ReadProgress(dir)
		if err == nil {
			s.Progress, s.Begun = *p, true
		}
		s.Err = err
	}
	j, submitted := jobs[dir]
	switch {
	case s.Progress.Summary != nil && s.Progress.Summary.StoppedBy == runfolder.Diverged:
		s.Phase = Diverged
	case s.Progress.Summary != nil:
		s.Phase = Done
	case submitted:
		w.ask(&s, j)
	default:
		s.Phase = w.alone(dir, s.Progress)
	}
	if submitted && s.Job == "" {
		if s.Job = j.record.jobOf(dir); j.task >= 0 {
			s.Job = fmt.Sprintf("%s_%d", s.Job, j.task)
		}
	}
	if s.Err != nil {
		s.Phase = Damaged
	}
	return s
}

// ask determines the phase by querying the batch system, or from the files on a machine without it.
func (w Watch) ask(s *Status, j job) {
	list, err := j.record.entries(s.Run, w.Queue)
	if fault.KindOf(err) == fault.Missing { // no batch system here
		if s.Begun {
			s.Phase = w.alone(s.Run, s.Progress)
		}
		return
	}
	e, known := entryOf(list, j.task)
	if err != nil || !known { // Slurm forgets a job some minutes after its end, however it ended
		if s.Phase = Stopped; s.Begun {
			s.Phase = w.alone(s.Run, s.Progress)
		}
		return
	}
	s.Phase = phase(e, s.Begun)
	s.Job = e.ID + " " + e.State
	if s.Phase == Queued || s.Phase == Requeued {
		s.Job += " (" + e.Reason + ")"
	}
}

// phase returns the phase of a run that has not ended.
func phase(e Entry, begun bool) string {
	switch e.State {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD":
		if begun || e.Restarts > 0 {
			return Requeued
		}
		return Queued
	case "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT":
		return Running
	}
	if strings.HasPrefix(e.State, "CANCELLED") {
		return Cancelled
	}
	return Failed
}

// Over reports whether a run will make no more progress.
func (s *Status) Over() bool {
	return s.Phase != Queued && s.Phase != Running && s.Phase != Requeued
}

// alone returns Running or Stopped for a run without a known job. It checks the lock if that belongs
// to this host. If not, it checks the time of the last write.
func (w Watch) alone(dir string, p runfolder.Progress) string {
	if held, known := runfolder.Locked(dir); known && held {
		return Running
	} else if known {
		return Stopped
	}
	patience := max(time.Minute, time.Duration(10*p.Seconds*float64(time.Second)))
	if w.Now.Sub(p.Written) > patience {
		return Stopped
	}
	return Running
}

// records returns the jobs of the runs at a path, in that folder or in its parents, or the job with
// that number.
func records(name string) map[string]job {
	paths, _ := filepath.Glob(filepath.Join(escape(name), "*"+recordSuffix))
	for dir := filepath.Clean(name); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		paths = append(paths, dir+recordSuffix)
	}
	numbered := jobNumber(name) != ""
	if numbered {
		paths, _ = filepath.Glob(filepath.Join("runs", "*"+recordSuffix))
	}
	found := map[string]job{}
	for _, path := range paths {
		var r Record
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &r) != nil || numbered && jobNumber(r.Job) != jobNumber(name) {
			continue
		}
		for task, run := range r.Runs {
			if !r.Array {
				task = -1
			}
			found[filepath.Clean(run)] = job{r, task}
		}
	}
	return found
}

// jobNumber returns the number at the start of an identifier such as 12, 12.server or 12[].server, or "".
func jobNumber(id string) string {
	number := id[:len(id)-len(strings.TrimLeft(id, "0123456789"))]
	if rest := id[len(number):]; rest != "" && rest[0] != '.' && rest[0] != '[' {
		return ""
	}
	return number
}

// escape escapes the special characters of patterns in a path.
func escape(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(path)
}

// find returns the run folders with a name, including those that do not exist yet, and the paths
// that are unreadable.
func find(name string, jobs map[string]job) (folders []string, damaged []Status) {
	dir := filepath.Clean(name)
	if runfolder.IsRun(dir) {
		return []string{dir}, nil
	}
	for run := range jobs {
		if run == dir || strings.HasPrefix(run, dir+"/") || jobNumber(name) != "" && jobNumber(jobs[run].record.Job) == jobNumber(name) {
			folders = append(folders, run)
		}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(folders) > 0: // not created yet, or just removed
			return nil
		case err != nil:
			damaged = append(damaged, unreadable(path, fault.System("status", path, err)))
			return nil
		case !d.IsDir():
			return nil
		case runfolder.IsRun(path):
			if !slices.Contains(folders, path) {
				folders = append(folders, path)
			}
			return fs.SkipDir
		}
		return nil
	})
	if len(folders)+len(damaged) == 0 {
		err := fault.New(fault.Missing, "status", dir, "there is no run folder or job of that name").
			Then("name a run folder, or a job that was submitted here")
		damaged = []Status{unreadable(dir, err)}
	}
	return folders, damaged
}

func unreadable(path string, err *fault.Error) Status {
	if err.Kind == fault.Missing {
		return Status{Run: path, Phase: Absent, Err: err}
	}
	return Status{Run: path, Phase: Damaged, Err: err}
}

// Print writes a table. The line of a damaged run ends with its fault.
func Print(w io.Writer, list []Status) error {
	t := table.Left("run", "state", "epoch", "loss", "val acc", "left", "job")
	for _, s := range list {
		t.Row(s.cells()...)
	}
	return t.Text(w)
}

// cells returns a line of the table.
func (s Status) cells() []string {
	epoch, loss, acc, left := "-", "-", "-", "-"
	if s.Begun {
		epoch = fmt.Sprintf("%d/%d", s.Progress.Done, s.Progress.Planned)
	}
	if s.Progress.Done > 0 {
		loss = fmt.Sprintf("%.4f", s.Progress.Last.Loss)
	}
	if s.Progress.ValAcc != nil {
		acc = fmt.Sprintf("%.4f", *s.Progress.ValAcc)
	}
	if s.Progress.Done > 0 && !s.Over() {
		left = s.Progress.Left().Round(time.Second).String()
	}
	job := cmp.Or(s.Job, "-")
	if s.Err != nil {
		job += "  " + strings.Join(strings.Fields(s.Err.Error()), " ")
	}
	return []string{s.Run, s.Phase, epoch, loss, acc, left, job}
}

// PrintJSON writes the list as a JSON array. It omits unknown values.
func PrintJSON(w io.Writer, list []Status) error {
	type line struct {
		Run     string   `json:"run"`
		State   string   `json:"state"`
		Epoch   int      `json:"epoch"`
		Epochs  int      `json:"epochs,omitempty"`
		Loss    *float64 `json:"loss,omitempty"`
		ValAcc  *float64 `json:"val_acc,omitempty"`
		Seconds float64  `json:"seconds_left,omitempty"`
		Job     string   `json:"job,omitempty"`
		Error   string   `json:"error,omitempty"`
	}
	all := []line{}
	for _, s := range list {
		l := line{Run: s.Run, State: s.Phase, Epoch: s.Progress.Done, Epochs: s.Progress.Planned, ValAcc: s.Progress.ValAcc, Job: s.Job}
		if s.Progress.Done > 0 {
			l.Loss = &s.Progress.Last.Loss
			if !s.Over() {
				l.Seconds = s.Progress.Left().Seconds()
			}
		}
		if s.Err != nil {
			l.Error = s.Err.Error()
		}
		all = append(all, l)
	}
	return table.JSON(w, all)
}
