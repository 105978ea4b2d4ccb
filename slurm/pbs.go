package slurm

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

// pbs is OpenPBS or PBS Pro. PBS sends no signal before the time limit, therefore the script has a timer. A signal
// for a job reaches all its processes, also the login shell that runs the script. SIGURG, which a shell ignores, ends
// none. Only an operator may requeue a job: the script submits itself again.
var pbs = scheduler{
	name: "pbs", title: "PBS", suffix: ".pbs", submit: []string{"qsub"}, id: regexp.MustCompile(`^(\d+(?:\[\])?(?:\.\S+)?)$`),
	cancel: "qdel", list: "pbsnodes -a", task: "$PBS_ARRAY_INDEX",
	jobName:   regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}$`),
	directive: regexp.MustCompile(`^-[A-Za-z]( [A-Za-z0-9_.,:+/@=%^\[\]-]+)?$`), form: "-x or -x VALUE",
	taken: []string{"-N", "-S", "-l select", "-l walltime", "-l place", "-q", "-A", "-J", "-V", "-r", "-j", "-o", "-e", "-k", "-C"},
	train: trainScript(pbsHead, pbsBegin, pbsEnd), partition: partitionScript(pbsPartitionHead, pbsPartitionBegin),
	after: func(id string) []string { return []string{"-W", "depend=afterok:" + id} },
	queue: pbsQueue,
}

const pbsLimits = `
{{- with .Limit}}
#PBS -l walltime={{.}}{{end}}
{{- with .Partition}}
#PBS -q {{.}}{{end}}
{{- with .Account}}
#PBS -A {{.}}{{end}}
`

// PBS accepts no range of one task, except by a step.
const pbsHead = `#!/bin/bash
#PBS -N {{.JobName}}
#PBS -S /bin/bash
#PBS -l select={{.Nodes}}:ncpus={{mul .TasksPerNode .CPUsPerTask}}:mpiprocs={{.TasksPerNode}}
	{{- with .GPUsPerNode}}:ngpus={{.}}{{end}}{{with .Mem}}:mem={{size .}}b{{end}}
#PBS -l place=scatter` + pbsLimits + `{{- if .Settings}}
#PBS -J {{if .LastTask}}0-{{.LastTask}}{{else}}0-1:2{{end}}{{.AtOnce}}{{end}}
{{- range .Extra}}
#PBS {{.}}{{end}}
#PBS -V
#PBS -r y
#PBS -j oe
#PBS -o /dev/null

`

// pbsBegin appends the output to the log of the first job of a run.
const pbsBegin = `job=${SIAFU_JOB:-$PBS_JOBID}
unset SIAFU_JOB
cd "$PBS_O_WORKDIR" || exit 66
exec >>{{quote .Run}}-"${job%%[.[]*}{{if .Settings}}_$PBS_ARRAY_INDEX{{end}}".out 2>&1
`

const pbsEnd = `
# URG: {{.Grace}} s before the time limit, or "qsig -s SIGURG JOB". TERM: qdel, or PBS at the time limit.
# Training finishes its epoch, saves and ends with 75. wait returns at each signal, therefore the loop.
again=
trap 'again=yes; kill -TERM "$ranks"' URG
trap 'again=; kill -TERM "$ranks"' TERM
{{- if .Time}}
{ sleep {{sub .Limit .Grace}}; kill -URG $$; } &{{end}}
while wait "$ranks"; kill -0 "$ranks" 2>/dev/null; do :; done
wait "$ranks"
code=$?

# PBS queues a preempted job again. A stopped one continues in a job of its own, with the same log.
if [ "$code" = 75 ] && [ "$again" ]; then
	qsub -v "SIAFU_JOB=$job"{{if .Settings}} -J "$PBS_ARRAY_INDEX-$((PBS_ARRAY_INDEX + 1)):2"{{end}} ` +
	`{{quote .ScriptPath}} >"$run.job.new" &&
		mv "$run.job.new" "$run` + nextSuffix + `" ||
		echo "siafu: the job was not submitted again: continue with qsub" {{quote (quote .ScriptPath)}} >&2
fi
exit "$code"
`

const pbsPartitionHead = `#!/bin/bash
#PBS -N {{.PartitionName}}
#PBS -S /bin/bash
#PBS -l select=1:ncpus={{.CPUsPerTask}}{{with .Mem}}:mem={{size .}}b{{end}}` + pbsLimits + `#PBS -V
#PBS -j oe
#PBS -o /dev/null

`

const pbsPartitionBegin = `cd "$PBS_O_WORKDIR"
exec >>{{quote .Run}}-partition-"${PBS_JOBID%%.*}".out 2>&1
`

// nextSuffix follows the path of a run folder in the name of the file with the identifier of the job that
// continues it.
const nextSuffix = recordSuffix + ".next"

// pbsQueue queries PBS for a job. PBS has finished jobs only if job_history_enable is set on the server, and without
// it has no answer to -x.
func pbsQueue(s *scheduler, id string) (list []Entry, err error) {
	for _, history := range []string{"-xtf", "-tf"} {
		text, errRun := s.run(nil, "qstat", history, "-F", "json", id)
		if err = errRun; err == nil {
			list, err = parsePBS(text)
		}
		if len(list) > 0 || fault.KindOf(err) == fault.Missing {
			break
		}
	}
	return list, err
}

// pbsStates has the states of Slurm that correspond to those of PBS. E: the job is ending.
var pbsStates = map[string]string{
	"Q": "PENDING", "H": "PENDING", "W": "PENDING", "T": "PENDING", "M": "PENDING",
	"R": "RUNNING", "B": "RUNNING", "S": "SUSPENDED", "U": "SUSPENDED", "E": "COMPLETING",
}

// deleted is the substate of a job that was deleted while it ran. A job that was deleted before has no exit status.
const deleted = 91

func parsePBS(text string) ([]Entry, error) {
	var answer struct {
		Jobs map[string]struct {
			State    string `json:"job_state"`
			Substate int    `json:"substate"`
			Exit     *int   `json:"Exit_status"`
			Comment  string `json:"comment"`
			Runs     int    `json:"run_count"`
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fault.New(fault.Config, "qstat", "", "the answer is not the expected JSON: %v", err).
			Then("use PBS Pro 14 or later, or OpenPBS")
	}
	var list []Entry
	for id, job := range answer.Jobs {
		e := Entry{ID: id, Task: -1, State: pbsStates[job.State], Reason: strings.TrimSpace(job.Comment), Restarts: max(job.Runs-1, 0)}
		if m := regexp.MustCompile(`\[(\d+)\]`).FindStringSubmatch(id); m != nil {
			e.Task, _ = strconv.Atoi(m[1])
		}
		if e.State == "" { // F, and X of a task
			e.State = "FAILED"
			if job.Substate == deleted || job.Exit == nil {
				e.State = "CANCELLED"
			} else if *job.Exit == 0 {
				e.State = "COMPLETED"
			}
		}
		e.Reason = cmp.Or(e.Reason, "None")
		list = append(list, e)
	}
	return list, nil
}
