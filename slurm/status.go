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
	"text/tabwriter"
	"time"

	"siafu/internal/fault"
	"siafu/internal/owner"
	"siafu/ranks/runfolder"
)

// Phases of a run.
const (
	Queued    = "queued"    // waits for its first start
	Running   = "running"   //
	Requeued  = "requeued"  // waits for its next start
	Done      = "done"      //
	Diverged  = "diverged"  // after its last epoch its weights gave no numbers any more
	Failed    = "failed"    // Slurm's job is over and the run is not
	Cancelled = "cancelled" // somebody has ended Slurm's job
	Stopped   = "stopped"   // not a job of Slurm's, and no longer writing
	Damaged   = "damaged"   // its files can't be read
	Absent    = "absent"    // there is nothing of that name
)

// Status is the state of a run.
type Status struct {
	Run      string
	Phase    string
	Job      string // Slurm's number and state, empty where it has none
	Progress runfolder.Progress
	Begun    bool  // there is a run folder
	Err      error // why it is damaged or absent
}

// Watch finds runs and says how they are doing.
type Watch struct {
	Queue func(job string) ([]Entry, error)
	Now   time.Time
}

// job is where a run stands in Slurm.
type job struct {
	record Record
	task   int
}

// All returns the status of the runs that the names mean: run folders, folders of
// runs, numbers of jobs. No name means all below runs/. What can't be read is in
// the list too, with its fault; the error, then, has the kind of the first one.
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

// firstFault returns the error of a list that holds what can't be read.
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
	return &fault.Error{Op: "status", Kind: fault.KindOf(first), Detail: fmt.Sprintf("%d of %d can't be read, the first", damaged, len(list)), Err: first}
}

// named returns the status of the runs that one name means.
func (w Watch) named(name string) []Status {
	jobs := records(name)
	folders, list := find(name, jobs)
	for _, dir := range folders {
		list = append(list, w.one(dir, jobs))
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Run, b.Run) })
	return list
}

// one returns the status of a run, whose job is looked for among jobs.
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
		s.Job = j.record.Job
	}
	if s.Err != nil {
		s.Phase = Damaged
	}
	return s
}

// ask takes the phase from Slurm. Where Slurm can't be asked, from the files.
func (w Watch) ask(s *Status, j job) {
	list, err := w.Queue(j.record.Job)
	if fault.KindOf(err) == fault.Missing { // no Slurm here
		if s.Begun {
			s.Phase = w.alone(s.Run, s.Progress)
		}
		return
	}
	e, known := entryOf(list, j.task)
	if err != nil || !known { // Slurm has forgotten it
		s.Phase = Failed
		return
	}
	s.Phase = phase(e, s.Begun)
	s.Job = e.ID + " " + e.State
	if s.Phase == Queued || s.Phase == Requeued {
		s.Job += " (" + e.Reason + ")"
	}
}

// phase is that of a run that has not ended.
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

// Over reports whether a run makes no progress any more.
func (s *Status) Over() bool {
	return s.Phase != Queued && s.Phase != Running && s.Phase != Requeued
}

// alone reports whether a run of which only the folder is known still writes: by its lock
// where that is of this host, else by the time.
func (w Watch) alone(dir string, p runfolder.Progress) string {
	if held, known := owner.Held(dir); known && held {
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

// records returns the jobs of the runs at, below and beside a path, or of the job
// with that number.
func records(name string) map[string]job {
	paths, _ := filepath.Glob(filepath.Join(escape(name), "*"+recordSuffix))
	for dir := filepath.Clean(name); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		paths = append(paths, dir+recordSuffix)
	}
	numbered := number(name) > 0
	if numbered {
		paths, _ = filepath.Glob(filepath.Join("runs", "*"+recordSuffix))
	}
	found := map[string]job{}
	for _, path := range paths {
		var r Record
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &r) != nil || numbered && r.Job != name {
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

// escape keeps a path from being a pattern.
func escape(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(path)
}

// find returns the run folders that a name means, those that do not exist yet
// included; and what could not be looked into.
func find(name string, jobs map[string]job) (folders []string, damaged []Status) {
	dir := filepath.Clean(name)
	if runfolder.IsRun(dir) {
		return []string{dir}, nil
	}
	for run := range jobs {
		if run == dir || strings.HasPrefix(run, dir+"/") || jobs[run].record.Job == name {
			folders = append(folders, run)
		}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(folders) > 0: // it comes, or has just gone
			return nil
		case err != nil:
			damaged = append(damaged, unread(path, fault.System("status", path, err)))
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
		err := fault.New(fault.Missing, "status", dir, "there is no run folder or job of that name").Then("name a run folder, or a job that was submitted here")
		damaged = []Status{unread(dir, err)}
	}
	return folders, damaged
}

// unread returns the line of what can't be looked into.
func unread(path string, err *fault.Error) Status {
	if err.Kind == fault.Missing {
		return Status{Run: path, Phase: Absent, Err: err}
	}
	return Status{Run: path, Phase: Damaged, Err: err}
}

// Print writes a table. A damaged run has its fault at the end of its line.
func Print(w io.Writer, list []Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\tstate\tepoch\tloss\tval acc\tleft\tjob")
	for _, s := range list {
		fmt.Fprintln(t, strings.Join(s.cells(), "\t"))
	}
	return t.Flush()
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

// PrintJSON writes the list as one JSON array. What is not known yet is not there.
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
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(all)
}
