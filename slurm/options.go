package slurm

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

const op = "submit"

// Options are the resources that a job requests from the batch system, and the flags of "siafu submit".
type Options struct {
	Scheduler    string   `default:"" enum:",slurm,pbs,lsf" placeholder:"NAME" help:"Batch system: slurm, pbs (OpenPBS, PBS Pro) or lsf. Empty: the first of them that is installed."`
	Nodes        int      `default:"1" help:"Number of nodes."`
	TasksPerNode int      `name:"ntasks-per-node" default:"1" help:"Ranks on each node."`
	CPUsPerTask  int      `name:"cpus-per-task" default:"1" help:"Processors, and worker threads, of each rank."`
	Time         string   `placeholder:"LIMIT" help:"Time limit, such as 02:00:00. A longer run is requeued and resumes from its checkpoint."`
	Mem          string   `placeholder:"SIZE" help:"Memory of each node, such as 16G."`
	GPUsPerNode  string   `name:"gpus-per-node" placeholder:"[TYPE:]N" help:"GPUs of each node, such as 4 or a100:4, for train --tensor cuda. Empty: with --tensor cuda one for each graph rank on a node, else none."`
	Partition    string   `name:"queue" aliases:"slurm-partition" placeholder:"NAME" help:"Queue of PBS or LSF, partition of Slurm."`
	Account      string   `placeholder:"NAME" help:"Account to charge; in LSF a project."`
	QOS          string   `name:"qos" placeholder:"NAME" help:"Quality of service (Slurm only)."`
	JobName      string   `name:"job-name" placeholder:"NAME" help:"Job name. Empty: name of the dataset."`
	Modules      []string `name:"module" placeholder:"NAME" help:"Environment module to load; may be repeated."`
	Container    string   `placeholder:"LINE" help:"Container command, such as \"apptainer exec siafu.sif\". siafu must be on the PATH inside the container."`
	Program      string   `placeholder:"PATH" help:"Path of siafu on the ranks. Empty: this program, or siafu in a container."`
	Grace        int      `default:"120" placeholder:"SECONDS" help:"Seconds before the time limit at which training saves and stops. Must be longer than an epoch."`
	Array        []string `sep:"none" placeholder:"FLAG=A,B" help:"Values of a train flag, one run each: seed=1,2,3 or seed=1..3. Repeat the flag for all combinations. A suffix %N limits concurrent runs to N, as in seed=1..5%2."`
	Directive    []string `aliases:"sbatch" sep:"none" placeholder:"FLAGS" help:"Other flags of sbatch, such as \"--gres=gpu:1 --mail-type=END\", or one flag of qsub or bsub, such as \"-m e\". May be repeated."`
	PartitionJob bool     `name:"partition-job" help:"Partition the dataset in a separate job before the training job."`
	Launcher     string   `default:"mpirun" enum:"mpirun,srun" help:"Launcher inside the job: mpirun, or srun --mpi=pmix in Slurm."`
	Restarts     int      `default:"3" help:"Maximum restarts after a crash within the job."`
	Interface    string   `name:"tcp-interface" placeholder:"NAME" help:"Network interface of MPI over TCP. Set it if MPI selects a wrong interface."`
	Script       string   `placeholder:"FILE" help:"Path of the script. Empty: RUN.sbatch, RUN.pbs or RUN.lsf."`
	DryRun       bool     `name:"dry-run" help:"Write and print the script without submitting it."`
}

// Validate checks the options before submission.
func (o *Options) Validate() error {
	for _, n := range []struct {
		flag string
		got  int
	}{{"nodes", o.Nodes}, {"ntasks-per-node", o.TasksPerNode}, {"cpus-per-task", o.CPUsPerTask}, {"grace", o.Grace},
		{"restarts", o.Restarts + 1}} {
		if n.got < 1 {
			return fault.New(fault.Usage, op, "", "--%s is too small", n.flag).Then("see \"siafu help submit\"")
		}
	}
	for flag, value := range map[string]string{
		"time": o.Time, "mem": o.Mem, "queue": o.Partition, "account": o.Account, "qos": o.QOS,
		"tcp-interface": o.Interface, "module": strings.Join(o.Modules, ","),
	} {
		if !plain.MatchString(value) {
			return fault.New(fault.Usage, op, "", "--%s=%q", flag, value).Then("use letters, digits and . , : + / @ = %% -")
		}
	}
	if o.GPUsPerNode != "" && !gpus.MatchString(o.GPUsPerNode) {
		return fault.New(fault.Usage, op, "", "--gpus-per-node=%q", o.GPUsPerNode).
			Then("write it as Slurm does: 4, or a100:4; leave it out for none")
	}
	return cmp.Or(schedulerOf(o.Scheduler).checkFlags(o), o.checkAtOnce(), o.checkGrace())
}

// Extra returns the other directives, one by one.
func (o *Options) Extra() []string {
	if schedulerOf(o.Scheduler) == &slurm {
		return strings.Fields(strings.Join(o.Directive, " "))
	}
	return o.Directive
}

// gpus matches a number of GPUs, optionally after their type.
var gpus = regexp.MustCompile(`^([A-Za-z0-9_.-]+:)?[1-9][0-9]{0,5}$`)

// AskGPUs sets the number of GPUs per node to one for each of the given number of graph ranks. 0
// means a run on CPUs. It fails if the requested number of GPUs does not match.
func (o *Options) AskGPUs(ranks int) error {
	each := min(o.TasksPerNode, ranks)
	switch asked := o.GPUsPerNode; {
	case asked == "" && ranks > 0:
		o.GPUsPerNode = strconv.Itoa(each)
	case asked == "":
	case ranks == 0:
		return fault.New(fault.Usage, op, "", "--gpus-per-node=%s, but the training runs on CPUs", asked).
			Then("put --tensor cuda after --, or leave --gpus-per-node out")
	default:
		if n, _ := strconv.Atoi(asked[strings.LastIndex(asked, ":")+1:]); n > each {
			return fault.New(fault.Usage, op, "", "--gpus-per-node=%s, but a node has %d graph ranks, each with one GPU", asked, each).
				Then("set --gpus-per-node to %d, or change --ntasks-per-node", each)
		}
	}
	return nil
}

// checkGrace returns a fault if the time limit is not longer than the grace period.
func (o *Options) checkGrace() error {
	limit, err := limitSeconds(o.Time)
	if err != nil {
		return fault.New(fault.Usage, op, "", "--time=%q: %v", o.Time, err).Then("write it as Slurm does: 30, 02:00:00, 1-12:00:00")
	}
	if limit > 0 && limit <= o.Grace {
		return fault.New(fault.Usage, op, "", "--time=%s is not longer than --grace=%d seconds", o.Time, o.Grace).
			Then("increase --time or reduce --grace")
	}
	return nil
}

// limitSeconds parses a time limit of Slurm: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S. An empty limit is
// 0.
func limitSeconds(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	units := map[int][]int{1: {60}, 2: {60, 1}, 3: {3600, 60, 1}}[len(parts)]
	if hasDays {
		units = []int{3600, 60, 1}
	}
	if len(parts) > len(units) {
		return 0, fmt.Errorf("too many colons")
	}
	total, err := strconv.Atoi(days)
	total *= 24 * 3600
	for i, p := range parts {
		n, e := strconv.Atoi(p)
		if e != nil || n < 0 {
			err = fmt.Errorf("%q is not a number", p)
		}
		total += n * units[i]
	}
	return total, err
}

// Memory returns Mem in bytes. The default unit is megabytes, as in Slurm. 0 means the cluster's
// default.
func (o *Options) Memory() (int64, error) {
	if o.Mem == "" {
		return 0, nil
	}
	digits := strings.TrimRight(strings.ToUpper(o.Mem), "KMGT")
	n, err := strconv.ParseInt(digits, 10, 40)
	shift, ok := map[string]int{"": 20, "K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(o.Mem[len(digits):])]
	if err != nil || n < 0 || !ok || n > math.MaxInt64>>shift {
		return 0, fault.New(fault.Usage, op, "", "--mem=%q", o.Mem).Then("write it as Slurm does: 16G, 4000M")
	}
	return n << shift, nil
}

// Limit returns the time limit in seconds, or 0 without one.
func (o *Options) Limit() int {
	s, _ := limitSeconds(o.Time) // Validate has checked it
	return s
}

// Ranks returns the number of ranks of a job.
func (o *Options) Ranks() int { return o.Nodes * o.TasksPerNode }

// Settings returns the combinations of Array, in the form "seed=1 hidden=64"; nil without a sweep.
func (o *Options) Settings() ([]string, error) {
	if len(o.Array) == 0 {
		return nil, nil
	}
	var axes []Axis
	for _, text := range o.Array {
		text, _, _ = strings.Cut(text, "%")
		flag, values, _ := strings.Cut(text, "=")
		a, err := NewAxis(op, flag, values)
		if err != nil {
			return nil, err
		}
		axes = append(axes, a)
	}
	grid, err := Grid(op, axes)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range grid {
		all = append(all, s.String())
	}
	return all, nil
}

// AtOnce returns the maximum number of simultaneous tasks of the array, such as "%2", or "" for all.
func (o *Options) AtOnce() string {
	for _, text := range o.Array {
		if _, n, ok := strings.Cut(text, "%"); ok {
			return "%" + n
		}
	}
	return ""
}

// checkAtOnce returns a fault if the suffix %N is not a number or occurs twice.
func (o *Options) checkAtOnce() error {
	asked := 0
	for _, text := range o.Array {
		_, n, ok := strings.Cut(text, "%")
		if !ok {
			continue
		}
		if asked++; asked > 1 || number(n) < 1 || strings.Trim(n, "0123456789") != "" {
			return fault.New(fault.Usage, op, "", "--array=%s", text).
				Then("append the number of simultaneous tasks to one --array, such as seed=1..5%%2")
		}
	}
	return nil
}
