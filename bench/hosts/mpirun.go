package hosts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"siafu/graph/fault"
)

// agent is what mpirun starts a host's daemon with, in the place of ssh: its
// arguments are the host's address and a command line.
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

// Mpirun is the command that runs a program with a rank on each host, over TCP
// and nothing else. When ctx ends mpirun is told to end its ranks, and is killed
// seconds later.
func (h *Hosts) Mpirun(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		return nil, fault.New(fault.Missing, op, "mpirun", "there is no such program").Then("install openmpi-bin")
	}
	var addresses []string
	for i := range h.count {
		addresses = append(addresses, h.Address(i))
	}
	subnet := h.subnet + ".0/24"
	line := []string{"--allow-run-as-root", "--bind-to", "none", "--host", strings.Join(addresses, ",")}
	for _, parameter := range [][2]string{
		{"plm_rsh_agent", filepath.Join(h.dir.Path, "agent")}, {"orte_tmpdir_base", h.dir.Path},
		{"btl", "tcp,self"}, {"btl_tcp_if_include", subnet}, {"oob_tcp_if_include", subnet},
		{"mpi_yield_when_idle", "1"},
	} {
		line = append(line, "--mca", parameter[0], parameter[1])
	}
	cmd := exec.CommandContext(ctx, mpirun, append(append(line, program), args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt reaches mpirun through us alone
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}
