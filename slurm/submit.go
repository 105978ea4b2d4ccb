package slurm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/ranks/runfolder"
)

// Record is the content of the file RUN.job: the submission of a run folder or of the folder of a
// sweep.
type Record struct {
	Job          string   `json:"job"`
	Scheduler    string   `json:"scheduler,omitempty"` // batch system; empty: Slurm
	PartitionJob string   `json:"partition_job,omitempty"`
	Script       string   `json:"script"`
	Runs         []string `json:"runs"` // of an array: by number of the task
	Array        bool     `json:"array"`
}

// jobOf returns the identifier of the newest job of a run.
func (r Record) jobOf(run string) string {
	text, _ := os.ReadFile(run + nextSuffix) // a script of PBS writes it
	return cmp.Or(strings.TrimSpace(string(text)), r.Job)
}

// entries queries the newest job of a run, which the run may change meanwhile.
func (r Record) entries(run string, queue func(scheduler, job string) ([]Entry, error)) ([]Entry, error) {
	for {
		id := r.jobOf(run)
		if list, err := queue(r.Scheduler, id); id == r.jobOf(run) {
			return list, err
		}
	}
}

// recordSuffix follows the path of the run folder in the name of a record.
const recordSuffix = ".job"

// Submit writes the scripts of a job and submits them. A dry run does not submit them, and its
// record has an empty Job. The kind of a fault is Missing without the batch system, Config if it rejects the
// job, and Usage if a script cannot contain a name. In the last case nothing is written.
func (j *Job) Submit() (Record, error) {
	if err := j.check(); err != nil {
		return Record{}, err
	}
	system := j.system()
	r := Record{Scheduler: system.name, Script: j.ScriptPath(), Runs: j.runs(), Array: j.Settings != nil}
	if err := j.vet(r.Script); err != nil {
		return r, err
	}
	if err := writeFile(r.Script, j.Script(), 0o755); err != nil {
		return r, err
	}
	var dependency []string
	if j.PartitionJob {
		script := j.partitionScriptPath()
		if err := writeFile(script, j.PartitionScript(), 0o755); err != nil || j.DryRun {
			return r, err
		}
		id, err := system.send(script)
		if err != nil {
			return r, err
		}
		r.PartitionJob = id
		dependency = system.after(id)
	}
	if j.DryRun {
		return r, nil
	}
	for _, run := range r.Runs {
		_ = os.Remove(run + nextSuffix) // of an earlier job
	}
	var err error
	if r.Job, err = system.send(r.Script, dependency...); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, fault.System(op, j.Run+recordSuffix, err)
	}
	return r, writeFile(j.Run+recordSuffix, string(text)+"\n", 0o644)
}

func (j *Job) partitionScriptPath() string {
	suffix := j.system().suffix
	return strings.TrimSuffix(j.ScriptPath(), suffix) + "-partition" + suffix
}

// vet returns a fault if a file to write is not siafu's or was edited, or if the job cannot be
// submitted.
func (j *Job) vet(script string) error {
	isScript := func(head []byte) bool { return bytes.Contains(head, []byte(mark)) }
	scripts := []string{script}
	if j.PartitionJob {
		scripts = append(scripts, j.partitionScriptPath())
	}
	for _, path := range scripts {
		if err := inventory.Overwrite(op, path, isScript); err != nil {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && edited(string(text)) {
			return fault.New(fault.Usage, op, path, "it was edited after siafu wrote it").
				Then("submit it unchanged with %s, or write another script with --script", j.system().submission(path))
		}
	}
	if j.DryRun {
		return nil
	}
	if err := j.alive(Queue); err != nil {
		return err
	}
	isRecord := func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("{\n  \"job\": \"")) && bytes.Contains(head, []byte(`"script": `))
	}
	if err := inventory.Overwrite(op, j.Run+recordSuffix, isRecord); err != nil {
		return err
	}
	if command := j.system().submit[0]; !exists(command) {
		return j.system().absent(command)
	}
	return nil
}

// alive returns a fault if a process writes one of the run folders, or if a job that has not ended
// may write it.
func (j *Job) alive(queue func(scheduler, job string) ([]Entry, error)) error {
	for _, run := range j.runs() {
		if held, known := runfolder.Locked(run); held && known {
			return fault.New(fault.Usage, op, run, "a training is writing this run folder").
				Then("wait until it ends, stop it, or choose another folder with --out")
		}
	}
	text, err := os.ReadFile(j.Run + recordSuffix)
	before := Record{}
	if err != nil || json.Unmarshal(text, &before) != nil {
		return nil // no record, or not siafu's: vet checks that
	}
	ids := []string{before.Job}
	for _, run := range before.Runs {
		ids = append(ids, before.jobOf(run))
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		list, _ := queue(before.Scheduler, id) // batch systems forget jobs that have ended
		for _, e := range list {
			if !e.ended() {
				return fault.New(fault.Usage, op, j.Run, "job %s (%s) uses this run folder", id, e.State).
					Then("wait until it ends, cancel it (%s %s), or choose another folder with --out",
						schedulerOf(before.Scheduler).cancel, id)
			}
		}
	}
	return nil
}

// runs returns the run folders that the script creates.
func (j *Job) runs() []string {
	if j.Settings == nil {
		return []string{j.Run}
	}
	var list []string
	for _, s := range j.Settings {
		list = append(list, filepath.Join(j.Run, strings.ReplaceAll(s, " ", ",")))
	}
	return list
}

// writeFile writes a file and creates its folder.
func writeFile(path, text string, mode os.FileMode) error {
	if err := durable.MkdirAll(op, filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(op, path, []byte(text), mode)
}
