package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

// Allocation has the hosts of a job of PBS or LSF, in their order, with the number of ranks that each may have. A host
// of LSF has a slot for each processor: it may have as many ranks as fit with OMP_NUM_THREADS threads each.
type Allocation struct {
	Scheduler string // "PBS", "LSF", or empty outside of their jobs
	Hosts     []string
	Slots     map[string]int
	agent     string // shell command that starts one on $host, with the control of the batch system
}

// Allocated returns the allocation of the job that the environment describes.
func Allocated(getenv func(string) string) Allocation {
	var a Allocation
	var words []string // hosts, each with its number of slots, or once for each slot
	switch {
	case getenv("PBS_JOBID") != "":
		a.Scheduler, a.agent = "PBS", `pbs_tmrsh "$host" sh -c`
		text, _ := os.ReadFile(getenv("PBS_NODEFILE")) // without the file, the job counts as one of this host
		words = strings.Fields(string(text))
	case getenv("LSB_JOBID") != "":
		a.Scheduler, a.agent = "LSF", `blaunch "$host"`
		words = strings.Fields(getenv("LSB_MCPU_HOSTS"))
	}
	a.Slots = map[string]int{}
	for i, word := range words {
		if n, err := strconv.Atoi(word); err == nil && i > 0 {
			a.Slots[words[i-1]] += n - 1
			continue
		}
		if a.Slots[word] == 0 {
			a.Hosts = append(a.Hosts, word)
		}
		a.Slots[word]++
	}
	if threads, _ := strconv.Atoi(getenv("OMP_NUM_THREADS")); threads > 1 && a.Scheduler == "LSF" {
		for host, n := range a.Slots {
			a.Slots[host] = max(n/threads, 1)
		}
	}
	return a
}

// Ranks returns the number of ranks that fit in the job, or 0 outside of one.
func (a Allocation) Ranks() (total int) {
	for _, n := range a.Slots {
		total += n
	}
	return total
}

// adopt makes the hosts of a job of PBS or LSF the hostfile, if there are several, and a script the agent that starts
// the launcher's daemons: launchers expect an agent like ssh, which passes one line to a shell. A launcher that was
// built without support of the batch system needs both.
func (o *Options) adopt(a Allocation, folder string) error {
	if o.Hostfile != "" || len(a.Hosts) < 2 || o.Launcher == InProcess {
		return nil
	}
	var text strings.Builder
	for _, host := range a.Hosts {
		fmt.Fprintf(&text, "%s slots=%d\n", host, a.Slots[host])
	}
	o.Hostfile = filepath.Join(folder, "job-hosts")
	if err := os.WriteFile(o.Hostfile, []byte(text.String()), 0o600); err != nil {
		return fault.System("launch", o.Hostfile, err)
	}
	command, _, _ := strings.Cut(a.agent, " ")
	if _, err := exec.LookPath(command); err != nil || os.Getenv("OMPI_MCA_plm_rsh_agent") != "" {
		return nil
	}
	o.agent = filepath.Join(folder, "agent")
	script := "#!/bin/sh\nhost=$1\nshift\nexec " + a.agent + " \"$*\"\n"
	if err := os.WriteFile(o.agent, []byte(script), 0o700); err != nil {
		return fault.System("launch", o.agent, err)
	}
	return nil
}
