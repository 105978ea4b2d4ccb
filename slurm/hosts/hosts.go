package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

const op = "hosts"

// Hosts are namespaces 1..n behind a bridge. The bridge has a random name, and hosts are named
// after it: NAME-0, NAME-1, ...
type Hosts struct {
	name   string // of the bridge
	subnet string // the first three numbers of all addresses
	count  int
	dir    *scratch.Folder // of the record, the agent and MPI's sessions; nil: none
}

// Open creates n hosts with links of unlimited rate. It returns a fault of kind Missing if this
// machine or user cannot create hosts.
func Open(n int) (*Hosts, error) {
	if n < 1 || n > 200 {
		return nil, fault.New(fault.Usage, op, "", "%d hosts", n).Then("set 1 to 200")
	}
	if err := possible(); err != nil {
		return nil, err
	}
	dir, err := scratch.New(folders(), 0o700, takeDown)
	if err != nil {
		return nil, fault.System(op, "", err)
	}
	name := "sf" + strings.ToLower(rand.Text()[:8]) // leaves room for -199 in the 15 bytes of a device name
	h := &Hosts{name: name, subnet: fmt.Sprintf("10.231.%d", os.Getpid()%256), count: n, dir: dir}
	for _, step := range []func() error{h.record, h.build, h.writeAgent} {
		if err := step(); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// folders returns the base name of the hosts' hidden folders.
func folders() string { return filepath.Join(os.TempDir(), "sf") }

// Release removes the hosts of killed processes, and returns their folders.
func Release() []string { return scratch.Sweep(folders(), takeDown) }

// recordFile is the file with the hosts' names in their folder.
const recordFile = "hosts"

// record stores the names that build will use, so that they can be removed after this process
// was killed.
func (h *Hosts) record() error {
	path := filepath.Join(h.dir.Path, recordFile)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s %d\n", h.name, h.count), 0o600); err != nil {
		return fault.System(op, path, err)
	}
	return nil
}

// takeDown removes the hosts of an ended process, according to the record in its folder. Without a
// record, the process has created none.
func takeDown(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil
	}
	h := &Hosts{}
	if _, err := fmt.Sscanf(string(text), "%s %d\n", &h.name, &h.count); err != nil {
		return nil
	}
	return h.Close()
}

// possible returns an error if hosts cannot be created.
func possible() error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Missing, op, "", "network namespaces need root").Then("run it as root")
	}
	for _, tool := range []string{"ip", "tc", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fault.New(fault.Missing, op, tool, "the program is not installed").Then("install iproute2 and util-linux")
		}
	}
	return nil
}

// build creates the bridge and all hosts.
func (h *Hosts) build() error {
	lines := [][]string{
		{"ip", "link", "add", h.name, "type", "bridge"},
		{"ip", "addr", "add", h.subnet + ".254/24", "dev", h.name},
		{"ip", "link", "set", h.name, "up"},
	}
	for i := range h.count {
		ns := h.Name(i)
		lines = append(lines, [][]string{
			{"ip", "netns", "add", ns},
			{"ip", "link", "add", ns, "type", "veth", "peer", "name", device, "netns", ns},
			{"ip", "link", "set", ns, "master", h.name, "up"},
			{"ip", "-n", ns, "addr", "add", h.Address(i) + "/24", "dev", device},
			{"ip", "-n", ns, "link", "set", device, "up"},
			{"ip", "-n", ns, "link", "set", "lo", "up"},
			{"ip", "netns", "exec", ns, "sh", "-c", "echo " + congestion + " > /proc/sys/net/ipv4/tcp_congestion_control"},
		}...)
	}
	for _, line := range lines {
		if err := command(line...); err != nil {
			return err
		}
	}
	return nil
}

// device is a host's end of its link.
const device = "eth0"

// congestion is the TCP congestion control of the hosts, independent of this machine's setting.
// Every kernel has it. BBR gives streams that start together very unequal bandwidth for longer than
// an exchange of rows, so that some links idle while others are full.
const congestion = "reno"

// Name returns the namespace of host i, which is also its host name.
func (h *Hosts) Name(i int) string { return fmt.Sprintf("%s-%d", h.name, i) }

// Address returns the address of host i.
func (h *Hosts) Address(i int) string { return fmt.Sprintf("%s.%d", h.subnet, i+1) }

// Close ends the processes in the hosts and removes the hosts, their links and the bridge. A second
// Close does nothing.
func (h *Hosts) Close() error {
	var failed error
	for i := range h.count {
		failed = errors.Join(failed, remove(h.Name(i)))
	}
	h.count = 0
	failed = errors.Join(failed, removeLink(h.name))
	if h.dir != nil && failed == nil { // keep the record while anything remains
		h.dir.Close()
	}
	return failed
}

// namespaces is the system's list of namespaces.
const namespaces = "/var/run/netns"

// remove ends the processes in a namespace, and removes its link and the namespace.
func remove(ns string) error {
	failed := removeLink(ns)
	if _, err := os.Stat(filepath.Join(namespaces, ns)); err != nil {
		return failed
	}
	for _, pid := range processes(ns) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	return errors.Join(failed, command("ip", "netns", "del", ns))
}

// removeLink removes a device. Without it, the kernel would remove a host's link some time after
// the namespace.
func removeLink(name string) error {
	if _, err := os.Stat("/sys/class/net/" + name); err != nil {
		return nil
	}
	return command("ip", "link", "del", name)
}

// command runs a program that reports errors on standard error.
func command(words ...string) error {
	out, err := exec.CommandContext(context.Background(), words[0], words[1:]...).CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return fault.New(fault.Missing, op, strings.Join(words, " "), "%v: %s", err, said).
		Then("use a kernel or container with network namespaces, veth, a bridge and tbf")
}
