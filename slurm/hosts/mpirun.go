package hosts

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"siafu/internal/fault"
	"siafu/slurm/launch"
)

// agent replaces ssh for mpirun: it starts a host's daemon. Its arguments are the host's
// address and a command line.
const agent = `#!/bin/sh
name=NAME-$((${1##*.} - 1)); shift
exec ip netns exec "$name" unshare --uts sh -c 'hostname "$1"; exec sh -c "$2"' sh "$name" "$*"
`

func (h *Hosts) writeAgent() error {
	path := filepath.Join(h.dir.Path, "agent")
	if err := os.WriteFile(path, []byte(strings.Replace(agent, "NAME", h.name, 1)), 0o700); err != nil {
		return fault.System(op, path, err)
	}
	return nil
}

// Run runs a program with a rank on each host, only over TCP, and returns when all ranks have
// ended. Their output goes to out. When ctx or this process ends, mpirun receives a signal to end
// its ranks. After ctx it is killed some seconds later.
func (h *Hosts) Run(ctx context.Context, out io.Writer, program string, args ...string) error {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		return fault.New(fault.Missing, op, "mpirun", "the program is not installed").Then("install openmpi-bin")
	}
	var addresses []string
	for i := range h.count {
		addresses = append(addresses, h.Address(i))
	}
	line := []string{"--allow-run-as-root", "--bind-to", "none", "--host", strings.Join(addresses, ","),
		"--mca", "mpi_yield_when_idle", "1"}
	cmd := exec.CommandContext(ctx, mpirun, append(append(line, program), args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), h.Environment()...)
	cmd.Stdout, cmd.Stderr = out, out
	defer launch.Bind(cmd)()
	return cmd.Run()
}

// Environment returns the variables with which mpirun, also below "siafu launch", starts its daemons in
// the hosts, and ranks communicate only over TCP.
func (h *Hosts) Environment() []string {
	subnet, agent := h.subnet+".0/24", filepath.Join(h.dir.Path, "agent")
	return []string{
		"OMPI_MCA_plm_rsh_agent=" + agent, "OMPI_MCA_orte_tmpdir_base=" + h.dir.Path,
		"PRTE_MCA_plm_ssh_agent=" + agent, "PRTE_MCA_prte_tmpdir_base=" + h.dir.Path, "PRTE_MCA_prte_if_include=" + subnet,
		"OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=" + subnet, "OMPI_MCA_oob_tcp_if_include=" + subnet,
	}
}

// Hostfile writes a file for mpirun with all hosts, each with the given number of slots, and returns its
// path.
func (h *Hosts) Hostfile(slots int) (string, error) {
	path := filepath.Join(h.dir.Path, "hostfile")
	var text strings.Builder
	for i := range h.count {
		fmt.Fprintf(&text, "%s slots=%d\n", h.Address(i), slots)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return "", fault.System(op, path, err)
	}
	return path, nil
}
