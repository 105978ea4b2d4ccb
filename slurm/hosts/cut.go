package hosts

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Cut disconnects a host from all others. Its processes continue.
func (h *Hosts) Cut(i int) error {
	return command("ip", "-n", h.Name(i), "link", "set", device, "down")
}

// Join connects a host again.
func (h *Hosts) Join(i int) error { return command("ip", "-n", h.Name(i), "link", "set", device, "up") }

// Kill kills all processes of a host at once.
func (h *Hosts) Kill(i int) {
	for _, pid := range processes(h.Name(i)) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
}

// processes returns the processes in a namespace, without this one.
func processes(ns string) (list []int) {
	out, err := exec.Command("ip", "netns", "pids", ns).Output()
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}
