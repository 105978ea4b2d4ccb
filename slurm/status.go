package slurm

import (
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

	"siafu/graph/fault"
	"siafu/ranks/runfolder"
)

// Phases of a run.
const (
	Queued   = "queued"   // waits for its first start
	Running  = "running"  //
	Requeued = "requeued" // waits for its next start
	Done     = "done"     //
	Failed   = "failed"   // Slurm's job is over and the run is not
	Stopped  = "stopped"  // not a job of Slurm's, and no longer writing
)

// Status is how a run is doing.
type Status struct {
	Run      string
	Phase    string
	Job      string // Slurm's number and state, empty where it has none
	Progress runfolder.Progress
	Begun    bool // there is a run folder
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

// All is the status of the runs that the names mean: run folders, folders of
// runs, numbers of jobs. No name means all below runs/.
func (w Watch) All(names []string) ([]Status, error) {
	if len(names) == 0 {
		names = []string{"runs"}
	}
	var list []Status
	for _, name := range names {
		jobs := records(name)
		folders, err := find(name, jobs)
		if err != nil {
			return nil, err
		}
		for _, dir := range folders {
			s, err := w.one(dir, jobs)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// one is the status of a run, whose job is looked for among jobs.
func (w Watch) one(dir string, jobs map[string]job) (Status, error) {
	s := Status{Run: dir, Phase: Queued}
	if runfolder.IsRun(dir) {
		p, err := runfolder.ReadProgress(dir)
		if err != nil {
			return s, err
		}
		s.Progress, s.Begun = *p, true
	}
	j, submitted := jobs[dir]
	switch {
	case s.Progress.Summary != nil:
		s.Phase = Done
	case submitted:
		w.ask(&s, j)
	default:
		s.Phase = w.alone(s.Progress)
	}
	if submitted && s.Job == "" {
		s.Job = j.record.Job
	}
	return s, nil
}

// ask takes the phase from Slurm. Where Slurm can't be asked, from the files.
func (w Watch) ask(s *Status, j job) {
	list, err := w.Queue(j.record.Job)
	if fault.KindOf(err) == fault.Missing { // no Slurm here
		if s.Begun {
			s.Phase = w.alone(s.Progress)
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
	return Failed
}

// alone tells whether a run of which only the folder is known still writes.
func (w Watch) alone(p runfolder.Progress) string {
	patience := max(time.Minute, time.Duration(10*p.Seconds*float64(time.Second)))
	if w.Now.Sub(p.Written) > patience {
		return Stopped
	}
	return Running
}

// records are the jobs of the runs at, below and beside a path, or of the job
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

// find is the run folders that a name means, those that do not exist yet
// included.
func find(name string, jobs map[string]job) ([]string, error) {
	dir := filepath.Clean(name)
	if runfolder.IsRun(dir) {
		return []string{dir}, nil
	}
	var list []string
	for run := range jobs {
		if run == dir || strings.HasPrefix(run, dir+"/") || jobs[run].record.Job == name {
			list = append(list, run)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(list) > 0:
			return nil
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case runfolder.IsRun(path):
			if !slices.Contains(list, path) {
				list = append(list, path)
			}
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fault.System("status", dir, err)
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Missing, "status", dir, "there is no run folder and no job of that name").Then("name a run folder, or a job that was submitted here")
	}
	slices.Sort(list)
	return list, nil
}

// Print writes a table.
func Print(w io.Writer, list []Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\tstate\tepoch\tloss\tval acc\tleft\tjob")
	for _, s := range list {
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
		if s.Progress.Done > 0 && s.Phase != Done {
			left = s.Progress.Left().Round(time.Second).String()
		}
		job := s.Job
		if job == "" {
			job = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Run, s.Phase, epoch, loss, acc, left, job)
	}
	return t.Flush()
}
