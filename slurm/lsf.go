package slurm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// lsf is IBM Spectrum LSF 10. Its warning action reaches all processes of a job: launch and ranks take USR1 as a
// request to save, and the script requests the stop.
var lsf = scheduler{
	name: "lsf", title: "LSF", suffix: ".lsf", submit: []string{"bsub"}, stdin: true, id: regexp.MustCompile(`^Job <(\d+)>`),
	cancel: "bkill", list: "bhosts", task: "LSB_JOBINDEX - 1",
	jobName:   regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}$`),
	directive: regexp.MustCompile("^-[A-Za-z_]+( (\"[^\"\\\\$`[:cntrl:]]*\"|[A-Za-z0-9_.,:+/@=%-]+))?$"),
	form:      `-x, -x VALUE or -x "VALUE"`,
	taken:     []string{"-J", "-n", "-W", "-q", "-P", "-gpu", "-wa", "-wt", "-o", "-oo", "-e", "-eo", "-r", "-rn"},
	train:     trainScript(lsfHead, lsfBegin, lsfEnd), partition: partitionScript(lsfPartitionHead, lsfPartitionBegin),
	after: func(id string) []string { return []string{"-w", "done(" + id + ")", "-ti"} },
	queue: lsfQueue,
}

const lsfLimits = `
{{- with .Mem}}
#BSUB -R "rusage[mem={{size .}}B/host]"{{end}}
{{- with .Limit}}
#BSUB -W {{minutes .}}{{end}}
{{- with .Partition}}
#BSUB -q {{.}}{{end}}
{{- with .Account}}
#BSUB -P {{.}}{{end}}
`

// A slot of LSF is a processor.
const lsfHead = `#!/bin/bash
#BSUB -J "{{.JobName}}{{if .Settings}}[1-{{len .Settings}}]{{.AtOnce}}{{end}}"
#BSUB -n {{mul .Nodes (mul .TasksPerNode .CPUsPerTask)}}
#BSUB -R "span[ptile={{mul .TasksPerNode .CPUsPerTask}}]"
{{- with .GPUsPerNode}}
#BSUB -gpu "num={{.}}/host"{{end}}` + lsfLimits + `{{- if .Time}}
#BSUB -wa USR1
#BSUB -wt {{minutes .Grace}}{{end}}
{{- range .Extra}}
#BSUB {{.}}{{end}}
#BSUB -r
#BSUB -o /dev/null

`

const lsfBegin = `exec >>{{quote .Run}}-"$LSB_JOBID{{if .Settings}}"_"$LSB_JOBINDEX{{end}}".out 2>&1
`

const lsfEnd = `
# USR1: {{minutes .Grace}} min before the time limit, or "bkill -s USR1 JOB". INT and TERM: bkill. Training finishes
# its epoch, saves and ends with 75. wait returns at each signal, therefore the loop.
again=
trap 'again=yes; kill -TERM "$ranks"' USR1
trap 'again=; kill -TERM "$ranks"' INT TERM
while wait "$ranks"; kill -0 "$ranks" 2>/dev/null; do :; done
wait "$ranks"
code=$?

# A cancelled job is queued again by nobody.
if [ "$code" = 75 ] && [ "$again" ]; then
	brequeue "$LSB_JOBID{{if .Settings}}[$LSB_JOBINDEX]{{end}}"
fi
exit "$code"
`

const lsfPartitionHead = `#!/bin/bash
#BSUB -J "{{.PartitionName}}"
#BSUB -n {{.CPUsPerTask}}
#BSUB -R "span[hosts=1]"` + lsfLimits + `#BSUB -o /dev/null

`

const lsfPartitionBegin = `exec >>{{quote .Run}}-partition-"$LSB_JOBID".out 2>&1
`

// lsfQueue queries LSF for a job.
func lsfQueue(s *scheduler, id string) ([]Entry, error) {
	text, err := s.run(nil, "bjobs", "-a", "-noheader", "-o", "jobid jobindex stat exit_reason delimiter='|'", id)
	return parseLSF(text), err
}

// lsfStates has the states of Slurm that correspond to those of LSF.
var lsfStates = map[string]string{
	"PEND": "PENDING", "PROV": "PENDING", "PSUSP": "PENDING", "WAIT": "PENDING", "RUN": "RUNNING", "UNKWN": "RUNNING",
	"USUSP": "SUSPENDED", "SSUSP": "SUSPENDED", "DONE": "COMPLETED",
}

func parseLSF(text string) (list []Entry) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 4 {
			continue
		}
		e := Entry{ID: f[0], Task: -1, State: lsfStates[f[2]], Reason: f[2]}
		if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
			e.Task = n - 1
			e.ID = fmt.Sprintf("%s[%d]", e.ID, n)
		}
		if e.State == "" { // EXIT, ZOMBI
			e.State = "FAILED"
			if strings.Contains(f[3], "_OWNER") || strings.Contains(f[3], "_ADMIN") { // such as TERM_FORCE_OWNER
				e.State = "CANCELLED"
			}
		}
		list = append(list, e)
	}
	return list
}
