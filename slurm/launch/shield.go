package launch

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// ShieldCommand is the hidden command of the program that calls Shield.
const ShieldCommand = "shield"

// endSignal makes mpirun, srun and siafu itself end, and with them the ranks.
const endSignal = syscall.SIGINT

// Bind has cmd, which this goroutine is to start, live no longer than this
// process: when this one ends, by whatever, the kernel sends it SIGINT, at which
// mpirun ends its ranks. Signals of a terminal reach cmd through this process
// alone. The goroutine calls release when cmd has ended: the kernel goes by the
// thread that started it, and keeps to that until then.
func Bind(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: endSignal}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// Shield replaces this process by a command that never gets SIGTERM. mpirun
// and srun unblock signals for what they start themselves, so the ranks do.
// Unless parent is 0 it is the number of the process that started this one, and
// the command gets SIGINT when that ends. Shield returns only if the command
// can't be started.
func Shield(parent int, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fault.New(fault.Missing, "launch", command[0], "%v", err)
	}
	// Both the mask and the signal at the end of the parent belong to a thread,
	// and execve keeps those of the thread that calls it.
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(syscall.SIGTERM) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fault.System("launch", "", err)
	}
	if parent != 0 {
		if err := endWith(parent); err != nil {
			return err
		}
	}
	return fault.System("launch", path, syscall.Exec(path, command, os.Environ()))
}

// endWith has the kernel send endSignal to this thread's process when its
// parent ends, which must be that process: if it has ended already, nothing
// will be sent.
func endWith(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(endSignal), 0, 0, 0); err != nil {
		return fault.System("launch", "", err)
	}
	if os.Getppid() != parent {
		return fault.New(fault.Stopped, "launch", "", "siafu launch, process %d, has ended", parent).Then("start it again")
	}
	return nil
}
