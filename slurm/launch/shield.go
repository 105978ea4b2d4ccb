package launch

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"siafu/graph/fault"
)

// ShieldCommand is the hidden command of the program that calls Shield.
const ShieldCommand = "shield"

// Shield replaces this process by a command that never gets SIGTERM. mpirun
// and srun unblock signals for what they start themselves, so the ranks do.
// It returns only if the command can't be started.
func Shield(command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fault.New(fault.Missing, "launch", command[0], "%v", err)
	}
	runtime.LockOSThread() // the mask is the thread's, and execve keeps it
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(syscall.SIGTERM) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fault.System("launch", "", err)
	}
	return fault.System("launch", path, syscall.Exec(path, command, os.Environ()))
}
