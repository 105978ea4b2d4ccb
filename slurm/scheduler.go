package slurm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"siafu/internal/fault"
)

// scheduler is a batch system. The three have one script, with directives and an end of their own.
type scheduler struct {
	name, title      string         // in flags and records, in messages
	suffix           string         // of a script, after the path of the run folder
	submit           []string       // submission command
	stdin            bool           // which reads the script from its standard input
	id               *regexp.Regexp // the first group is the identifier of a job in the command's answer
	cancel, list     string         // commands that messages name
	cpus, task       string         // of a script: processors of a rank (empty: a number), subscript of its setting
	jobName          *regexp.Regexp // valid names of jobs; nil: see check
	directive        *regexp.Regexp // valid other directives
	form             string         // of these, for a remedy
	taken            []string       // directives that submit writes itself
	train, partition *template.Template
	after            func(id string) []string // flags of submit for a job that waits for the success of another
	queue            func(s *scheduler, id string) ([]Entry, error)
}

// schedulers has all batch systems. The first one with an installed submission command is the default.
var schedulers = []*scheduler{&slurm, &pbs, &lsf}

var slurm = scheduler{
	name: "slurm", title: "Slurm", suffix: ".sbatch", submit: []string{"sbatch", "--parsable"}, id: regexp.MustCompile(`^([^;\s]+)`),
	cancel: "scancel", list: "sinfo", cpus: "$SLURM_CPUS_PER_TASK", task: "$SLURM_ARRAY_TASK_ID",
	directive: regexp.MustCompile(`^--[a-z][a-z-]*(=[A-Za-z0-9_.,:+/@=%\[\]-]+)?$`), form: "--name or --name=value",
	taken: []string{"--nodes", "--ntasks-per-node", "--ntasks", "--cpus-per-task", "--time", "--mem", "--partition", "--account", "--qos",
		"--job-name", "--array", "--output", "--open-mode", "--requeue", "--no-requeue", "--signal"},
	train: trainScript(slurmHead, "", slurmEnd), partition: partitionScript(slurmPartitionHead, ""),
	// Without the second flag, the job would wait forever if the partitioning fails.
	after: func(id string) []string { return []string{"--dependency=afterok:" + id, "--kill-on-invalid-dep=yes"} },
	queue: slurmQueue,
}

// schedulerOf returns the batch system of that name. Records of older versions have no name: they are Slurm's.
func schedulerOf(name string) *scheduler {
	i := slices.IndexFunc(schedulers, func(s *scheduler) bool { return s.name == name })
	return schedulers[max(i, 0)]
}

// ChooseScheduler sets Scheduler to the first batch system whose submission command is installed, or to
// Slurm. The note is not empty if there are several.
func (o *Options) ChooseScheduler() (note string) {
	if o.Scheduler != "" {
		return ""
	}
	var found []string
	for _, s := range schedulers {
		if s.installed() {
			found = append(found, s.name)
		}
	}
	if o.Scheduler = append(found, slurm.name)[0]; len(found) > 1 {
		note = fmt.Sprintf("this machine has several batch systems: --scheduler %s is used of %s", found[0], strings.Join(found, ", "))
	}
	return note
}

// installed reports whether the submission command exists. Grid Engine, Torque and Slurm's wrappers have a qsub, too.
func (s *scheduler) installed() bool {
	if s != &pbs {
		return exists(s.submit[0])
	}
	answer, _ := exec.Command(s.submit[0], "--version").CombinedOutput()
	return bytes.Contains(answer, []byte("pbs_version"))
}

// exists reports whether a command is on the PATH.
func exists(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// submission returns the command line that submits a script.
func (s *scheduler) submission(script string) string {
	if s.stdin {
		return s.submit[0] + " <" + Quote(script)
	}
	return s.submit[0] + " " + Quote(script)
}

// send submits a script and returns the job's identifier.
func (s *scheduler) send(script string, flags ...string) (string, error) {
	args := slices.Concat(s.submit[1:], flags)
	var in io.Reader
	if s.stdin {
		f, err := os.Open(script)
		if err != nil {
			return "", fault.System(op, script, err)
		}
		defer f.Close()
		in = f
	} else {
		args = append(args, script)
	}
	out, err := s.run(in, s.submit[0], args...)
	if err != nil {
		return "", err
	}
	m := s.id.FindStringSubmatch(strings.TrimSpace(out))
	if m == nil {
		return "", fault.New(fault.Config, s.submit[0], script, "the answer has no job number: %q", out).
			Then("check with %s whether the job was submitted", s.list)
	}
	return m[1], nil
}

// run runs a command of the batch system and returns its output.
func (s *scheduler) run(in io.Reader, name string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case errors.As(err, &exited):
		return out.String(), fault.New(fault.Config, name, "", "%s", strings.Join(strings.Fields(said.String()), " ")).
			Then("list the resources of this cluster with %s", s.list)
	case errors.Is(err, exec.ErrNotFound):
		return "", s.absent(name)
	}
	return "", fault.System(name, "", fmt.Errorf("it did not start: %w", err))
}

// absent returns the fault of a machine without a command of the batch system.
func (s *scheduler) absent(command string) error {
	return fault.New(fault.Missing, command, "", "this machine has no %s", s.title).
		Then("submit from a login node of the cluster, or write only the script with --dry-run")
}

// checkFlags returns a fault if the batch system does not have a requested resource or directive.
func (s *scheduler) checkFlags(o *Options) error {
	for flag, given := range map[string]bool{"qos": o.QOS != "", "launcher srun": o.Launcher == "srun",
		"gpus-per-node TYPE:N": strings.Contains(o.GPUsPerNode, ":")} {
		if given && s != &slurm {
			return fault.New(fault.Usage, op, "", "%s has no --%s", s.title, flag).
				Then("leave it out; --queue and --directive select resources of this cluster")
		}
	}
	for _, d := range o.Extra() {
		isTaken := slices.ContainsFunc(s.taken, func(t string) bool {
			rest, ok := strings.CutPrefix(d, t)
			return ok && strings.IndexAny(cmp.Or(rest, "="), " =") == 0
		})
		if !s.directive.MatchString(d) || isTaken {
			return fault.New(fault.Usage, op, "", "--directive has %q", d).
				Then("write each directive of %s as %s, and use submit's own for %s", s.title, s.form, strings.Join(s.taken, ", "))
		}
	}
	return nil
}
