package slurm

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// Job is the training that a script runs.
type Job struct {
	Options
	Self     string   // siafu on the nodes, outside of any container
	Run      string   // run folder, or the folder of the runs of a sweep
	Train    []string // [CONFIG.toml] DATA and the flags of train
	Resume   []string // flags that make train resume
	ID       string   // identifies run folders of all starts of the script
	Settings []string // of a sweep, each in the form "seed=1 hidden=64"
	Parts    []string // arguments of "siafu partition"
	Survive  bool     // the run continues after the loss of ranks, and of nodes
}

// Script returns the batch script of the training job.
func (j *Job) Script() string { return fill(j.system().train, j) }

// PartitionScript returns the batch script of the job that partitions the dataset.
func (j *Job) PartitionScript() string { return fill(j.system().partition, j) }

// system returns the batch system of the job.
func (j *Job) system() *scheduler { return schedulerOf(j.Scheduler) }

// ScriptPath returns the path of the script of the training job.
func (j *Job) ScriptPath() string { return cmp.Or(j.Options.Script, j.Run+j.system().suffix) }

// CPUs returns the processors of a rank, in the script.
func (j *Job) CPUs() string { return cmp.Or(j.system().cpus, fmt.Sprint(j.CPUsPerTask)) }

// Task returns the subscript of the setting of a task, in the script.
func (j *Job) Task() string { return j.system().task }

func fill(t *template.Template, j *Job) string {
	var b strings.Builder
	if err := t.Execute(&b, j); err != nil {
		panic("slurm: a script's template does not fit Job")
	}
	return seal(b.String())
}

// mark identifies generated scripts. It is followed by the checksum of the script without it,
// which detects edits.
const mark = `# Written by "siafu submit"`

var sealed = regexp.MustCompile(regexp.QuoteMeta(mark) + `, checksum ([0-9a-f]{8})`)

func seal(text string) string {
	return strings.Replace(text, mark, fmt.Sprintf("%s, checksum %08x", mark, crc32.ChecksumIEEE([]byte(text))), 1)
}

// edited reports whether a sealed script was changed after it was written.
func edited(text string) bool {
	m := sealed.FindString(text)
	return m != "" && seal(strings.Replace(text, m, mark, 1)) != text
}

// LastTask returns the highest task number of the array.
func (j *Job) LastTask() int { return len(j.Settings) - 1 }

// Log returns the log file of a job of that number, or the pattern for an array.
func (j *Job) Log(number string) string {
	number, _, _ = strings.Cut(number, ".")
	number = strings.TrimSuffix(number, "[]")
	if j.Settings != nil {
		number += "_*"
	}
	return j.Run + "-" + number + ".out"
}

// LogPattern returns Log in Slurm's syntax.
func (j *Job) LogPattern() string {
	if j.Settings != nil {
		return filename(j.Run) + "-%A_%a.out"
	}
	return filename(j.Run) + "-%j.out"
}

// PartitionLogPattern returns the log of the partitioning job.
func (j *Job) PartitionLogPattern() string { return filename(j.Run) + "-partition-%j.out" }

// PartitionName returns the name of the partitioning job.
func (j *Job) PartitionName() string { return j.JobName + "-partition" }

// Launch returns the command line before the arguments of train.
func (j *Job) Launch() string {
	words := []string{j.Self, "launch"}
	if j.Launcher != "mpirun" {
		words = append(words, "--launcher", j.Launcher)
	}
	if j.Container != "" {
		words = append(words, "--container", j.Container)
	}
	if j.Program != "" {
		words = append(words, "--program", j.Program)
	}
	words = append(words, "--restarts", fmt.Sprint(j.Restarts))
	return Quote(words...)
}

// Arguments returns the arguments of train without the run folder.
func (j *Job) Arguments() string {
	line := Quote(j.Train...)
	if !contains(j.Train, "--threads") {
		line += ` --threads "` + j.CPUs() + `"`
	}
	if j.Settings != nil {
		line += " --${setting// / --}"
	}
	return line
}

// Partitioning returns the command line of the partitioning job.
func (j *Job) Partitioning() string {
	program := cmp.Or(j.Program, j.Self)
	if j.Container != "" {
		program = cmp.Or(j.Program, "siafu")
	}
	words := append(strings.Fields(j.Container), program, "partition")
	return Quote(append(words, j.Parts...)...)
}

// contains reports whether a flag is among words, as --flag or --flag=value.
func contains(words []string, flag string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") })
}

// unitless matches a size of memory whose unit is Slurm's default.
var unitless = regexp.MustCompile(`^[0-9]+$`)

func parse(name, text string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{
		"quote": Quote, "value": value,
		"mul": func(a, b int) int { return a * b }, "sub": func(a, b int) int { return a - b },
		"minutes": func(seconds int) int { return (seconds + 59) / 60 },
		"size":    func(mem string) string { return unitless.ReplaceAllString(mem, "${0}M") },
	}).Parse(text))
}

// trainScript returns the script of the training job.
func trainScript(head, begin, end string) *template.Template {
	return parse("train", head+mark+`. Submitted again, it goes on where the run stopped.
set -u
`+begin+`{{- with .ID}}
export SIAFU_LAUNCH={{.}}{{end}}
`+modules+`export OMP_NUM_THREADS={{.CPUs}}
export GOMAXPROCS={{.CPUs}}
export OMPI_MCA_mpi_yield_when_idle=1
{{- with .Interface}}
export OMPI_MCA_btl_tcp_if_include={{quote .}} OMPI_MCA_oob_tcp_if_include={{quote .}}{{end}}
{{if .Settings}}
settings=(
{{- range .Settings}}
	"{{.}}"{{end}}
)
setting=${settings[{{.Task}}]}
run={{quote .Run}}/${setting// /,}
{{else}}
run={{quote .Run}}
{{end}}
{{.Launch}} \
	train {{.Arguments}} \
	--out "$run"{{range .Resume}} {{.}}{{end}} &
ranks=$!
`+end)
}

// partitionScript returns the script of the job that partitions the dataset.
func partitionScript(head, begin string) *template.Template {
	return parse("partition", head+mark+`: divides the dataset before the training job starts.
set -eu
`+begin+modules+`{{.Partitioning}}
`)
}

// modules loads the modules, and ends the job if that fails: later errors would be misleading.
const modules = `{{- range .Modules}}
module load {{quote .}} || { echo "siafu: module {{.}} was not loaded on $(hostname)" >&2; exit 78; }{{end}}
`

// slurmLimits has the lines that all jobs of a run have in common.
const slurmLimits = `{{- with .Time}}
#SBATCH --time={{value .}}{{end}}
{{- with .Mem}}
#SBATCH --mem={{value .}}{{end}}
{{- with .Partition}}
#SBATCH --partition={{value .}}{{end}}
{{- with .Account}}
#SBATCH --account={{value .}}{{end}}
{{- with .QOS}}
#SBATCH --qos={{value .}}{{end}}
`

const slurmHead = `#!/bin/bash
#SBATCH --job-name={{value .JobName}}
#SBATCH --nodes={{.Nodes}}
#SBATCH --ntasks-per-node={{.TasksPerNode}}
#SBATCH --cpus-per-task={{.CPUsPerTask}}
{{- with .GPUsPerNode}}
#SBATCH --gpus-per-node={{value .}}{{end}}
` + slurmLimits + `{{- if .Settings}}
#SBATCH --array=0-{{.LastTask}}{{.AtOnce}}{{end}}
{{- if .Survive}}
#SBATCH --no-kill{{end}}
{{- range .Extra}}
#SBATCH {{.}}{{end}}
#SBATCH --output={{value .LogPattern}}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{{.Grace}}

`

const slurmEnd = `
# USR1: {{.Grace}} s before the time limit, or "scancel --signal=USR1 --batch JOB".
# TERM: Slurm wants the nodes back. Training finishes its epoch, saves and ends
# with 75. wait returns at each signal, therefore the loop.
trap 'kill -TERM "$ranks"' TERM USR1
while wait "$ranks"; code=$?; kill -0 "$ranks" 2>/dev/null; do :; done

# A preempted job is queued again by Slurm, and a cancelled one by nobody.
if [ "$code" = 75 ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
	scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
`

const slurmPartitionHead = `#!/bin/bash
#SBATCH --job-name={{value .PartitionName}}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={{.CPUsPerTask}}
` + slurmLimits + `#SBATCH --output={{value .PartitionLogPattern}}

`
