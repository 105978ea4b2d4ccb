package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	PartitionJob string   `json:"partition_job,omitempty"`
	Script       string   `json:"script"`
	Runs         []string `json:"runs"` // of an array: by number of the task
	Array        bool     `json:"array"`
}

// recordSuffix follows the path of the run folder in the name of a record.
const recordSuffix = ".job"

// Submit writes the scripts of a job and submits them. A dry run does not submit them, and its
// record has an empty Job. The kind of a fault is Missing without Slurm, Config if Slurm rejects the
// job, and Usage if a script cannot contain a name. In the last case nothing is written.
func (j *Job) Submit() (Record, error) {
	if err := j.check(); err != nil {
		return Record{}, err
	}
	r := Record{Script: j.Options.Script, Runs: j.runs(), Array: j.Settings != nil}
	if r.Script == "" {
		r.Script = j.Run + ".sbatch"
	}
	if err := j.vet(r.Script); err != nil {
		return r, err
	}
	if err := writeFile(r.Script, j.Script(), 0o755); err != nil {
		return r, err
	}
	var dependency []string
	if j.PartitionJob {
		script := partitionScriptOf(r.Script)
		if err := writeFile(script, j.PartitionScript(), 0o755); err != nil || j.DryRun {
			return r, err
		}
		id, err := sbatch(script)
		if err != nil {
			return r, err
		}
		r.PartitionJob = id
		// Without the second flag, the job would wait forever if the partitioning fails.
		dependency = []string{"--dependency=afterok:" + id, "--kill-on-invalid-dep=yes"}
	}
	if j.DryRun {
		return r, nil
	}
	var err error
	if r.Job, err = sbatch(r.Script, dependency...); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, fault.System(op, j.Run+recordSuffix, err)
	}
	return r, writeFile(j.Run+recordSuffix, string(text)+"\n", 0o644)
}

func partitionScriptOf(script string) string {
	return strings.TrimSuffix(script, ".sbatch") + "-partition.sbatch"
}

// vet returns a fault if a file to write is not siafu's or was edited, or if the job cannot be
// submitted.
func (j *Job) vet(script string) error {
	isScript := func(head []byte) bool { return bytes.Contains(head, []byte(mark)) }
	scripts := []string{script}
	if j.PartitionJob {
		scripts = append(scripts, partitionScriptOf(script))
	}
	for _, path := range scripts {
		if err := inventory.Overwrite(op, path, isScript); err != nil {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && edited(string(text)) {
			return fault.New(fault.Usage, op, path, "it was edited after siafu wrote it").
				Then("submit it unchanged with sbatch %s, or write another script with --script", Quote(path))
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
	if _, err := exec.LookPath("sbatch"); err != nil {
		return noSlurm("sbatch")
	}
	return nil
}

// alive returns a fault if a process writes one of the run folders, or if a job that has not ended
// may write it.
func (j *Job) alive(queue func(job string) ([]Entry, error)) error {
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
	list, _ := queue(before.Job) // Slurm forgets jobs that have ended
	for _, e := range list {
		if !e.ended() {
			return fault.New(fault.Usage, op, j.Run, "job %s (%s) uses this run folder", before.Job, e.State).
				Then("wait until it ends, cancel it (scancel %s), or choose another folder with --out", before.Job)
		}
	}
	return nil
}

// noSlurm returns the fault of a machine without a command of Slurm.
func noSlurm(name string) error {
	return fault.New(fault.Missing, name, "", "this machine has no Slurm").
		Then("submit from a login node of the cluster, or write only the script with --dry-run")
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

// sbatch submits a script and returns the job's number.
func sbatch(script string, flags ...string) (string, error) {
	out, err := client("sbatch", append(append([]string{"--parsable"}, flags...), script)...)
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // the name of the cluster may follow
	return id, err
}

// client runs a command of Slurm and returns its output.
func client(name string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case errors.As(err, &exited):
		return "", fault.New(fault.Config, name, "", "%s", strings.Join(strings.Fields(said.String()), " ")).
			Then("list the resources of this cluster with sinfo")
	case errors.Is(err, exec.ErrNotFound):
		return "", noSlurm(name)
	}
	return "", fault.System(name, "", fmt.Errorf("it did not start: %w", err))
}
