package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// ShieldCommand is the hidden command of the program that calls Shield.
const ShieldCommand = "shield"

// endSignal ends mpirun, srun and siafu itself, and with them the ranks.
const endSignal = syscall.SIGINT

// Bind binds the life of cmd to that of this process: when this process ends for any reason, the
// kernel sends cmd SIGINT, and mpirun then ends its ranks. The terminal's signals reach cmd only
// through this process. The calling goroutine must start cmd, and must call release after cmd has
// ended: the kernel watches the thread that started cmd, which must live until then.
func Bind(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: endSignal}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// Shield replaces this process by a command with SIGTERM blocked. The ranks do receive SIGTERM,
// because mpirun and srun unblock signals for their children. parent is the id of the parent
// process, at whose end the command receives SIGINT, or 0. Shield returns only if the command cannot
// be started. With exposed, SIGTERM is not blocked, and SIGKILL takes the place of SIGINT, which Hydra
// forwards to ranks that may not have begun: its daemons end the ranks when it is gone.
func Shield(parent int, exposed bool, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fault.New(fault.Missing, "launch", command[0], "%v", err)
	}
	// The signal mask and the signal at the parent's end belong to a thread. execve keeps those of
	// its calling thread.
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(syscall.SIGTERM) - 1)
	end := endSignal
	if exposed {
		set.Val[0], end = 0, syscall.SIGKILL
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fault.System("launch", "", err)
	}
	if parent != 0 {
		if err := endWith(parent, end); err != nil {
			return err
		}
	}
	return fault.System("launch", path, syscall.Exec(path, command, os.Environ()))
}

// Agent runs a command that starts a daemon of mpirun on another host, such as ssh, and returns its exit
// code. After the ranks have begun, it returns 0 even if the command fails, as it does when the host
// is lost.
func Agent(command []string) (code int, err error) {
	if n := len(command); filepath.Base(command[0]) == Srun { // srun has no shell on the other host
		host := slices.IndexFunc(command, func(word string) bool { return word == "--nodelist" }) + 2
		command = append(slices.Clone(command[:min(host, n)]), "sh", "-c", strings.Join(command[min(host, n):], " "))
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	defer Bind(cmd)()
	if err := cmd.Start(); err != nil {
		return 0, fault.New(fault.Missing, "launch", command[0], "%v", err)
	}
	_ = cmd.Wait() // ProcessState has the result
	if readStatus(os.Getenv(StatusVariable)).ready {
		return 0, nil
	}
	return exitCode(cmd.ProcessState), nil
}

// endWith requests that the kernel sends a signal to this process when its parent ends. It fails if
// the parent has already ended, because the kernel would then send no signal.
func endWith(parent int, s syscall.Signal) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(s), 0, 0, 0); err != nil {
		return fault.System("launch", "", err)
	}
	if os.Getppid() != parent {
		return fault.New(fault.Stopped, "launch", "", "siafu launch, process %d, has ended", parent).Then("start it again")
	}
	return nil
}
