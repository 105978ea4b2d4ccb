package hosts

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// open makes hosts, or skips the test with the reason why it cannot.
func open(t *testing.T, n int) *Hosts {
	t.Helper()
	h, err := Open(n)
	if fault.KindOf(err) == fault.Missing {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A link has its set rate in both directions, also after a change.
func TestLinksHaveTheirRates(t *testing.T) {
	h := open(t, 2)
	for _, mbit := range []float64{100, 400} {
		if err := h.Shape(mbit * 1e6 / 8); err != nil {
			t.Skip(err) // no token bucket filter in this kernel
		}
		for from := range 2 {
			// Headers take 4 %; a busy machine may be slower than its link, and then take in
			// at once what has come meanwhile.
			for tries := 1; ; tries++ {
				m, err := h.Measure(from, 1-from)
				if err != nil {
					t.Fatal(err)
				}
				got := m.Bandwidth * 8 / 1e6
				if got <= mbit && got >= 0.5*mbit && m.Latency > 0 && m.Latency <= 0.1 {
					break
				}
				if tries == 5 {
					t.Errorf("from %d at %.0f Mbit/s: %.0f Mbit/s, latency %v s", from, mbit, got, m.Latency)
					break
				}
			}
		}
	}
}

// Close ends processes in hosts and removes everything.
func TestNothingIsLeft(t *testing.T) {
	h := open(t, 2)
	sleeper := exec.Command("ip", "netns", "exec", h.Name(1), "sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if inside, err := exec.Command("ip", "netns", "pids", h.Name(1)).Output(); err == nil && len(inside) > 0 {
			break
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("what ran in a host has ended by itself")
	}
	left(t, h.name)
}

const child = "SIAFU_TEST_HOSTS"

// As a child process this program makes a host, prints its name, and waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	h, err := Open(1)
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(h.name)
	time.Sleep(time.Hour) // an empty select would end the process as a deadlock
}

// Open removes the hosts of a killed process, but not those of a running one, nor foreign
// devices with similar names.
func TestKilled(t *testing.T) {
	open(t, 1).Close()     // or skip
	foreign := "sf4194303" // no process has this number
	t.Cleanup(func() {
		if err := errors.Join(remove(foreign+"-0"), removeLink(foreign)); err != nil {
			t.Error(err)
		}
	})
	for _, line := range []string{"ip netns add " + foreign + "-0", "ip link add " + foreign + " type bridge"} {
		if err := command(strings.Fields(line)...); err != nil {
			t.Fatal(err)
		}
	}
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env, owner.Stderr = append(os.Environ(), child+"=1"), os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil || owner.Start() != nil {
		t.Fatal("the process does not start")
	}
	name := make([]byte, 16)
	n, err := out.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	theirs := string(name[:n])
	open(t, 1)
	there(t, theirs, foreign)
	_ = owner.Process.Kill()
	_ = owner.Wait() // it was killed
	there(t, theirs, foreign)
	open(t, 1)
	left(t, theirs)
	there(t, foreign)
}

// there fails unless bridge and namespace of each name exist.
func there(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, path := range []string{"/sys/class/net/" + name, filepath.Join(namespaces, name+"-0")} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
}

// left fails if devices or namespaces of a name are there.
func left(t *testing.T, name string) {
	t.Helper()
	for _, dir := range []string{"/sys/class/net", namespaces} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), name) {
				t.Errorf("%s is left", filepath.Join(dir, e.Name()))
			}
		}
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, n := range []int{0, 201} {
		if _, err := Open(n); fault.KindOf(err) != fault.Usage {
			t.Errorf("%d hosts: %v", n, err)
		}
	}
	err := command("ip", "link", "set", "nosuchdevice", "up")
	if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "nosuchdevice") {
		t.Errorf("%v", err)
	}
}

// A stream of known size from one host to another is counted once, with at most the headers
// and acknowledgements of TCP: under a tenth.
func TestCountersHaveTheBytesOfAStream(t *testing.T) {
	h := open(t, 2)
	c, err := h.Counters()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from, to, err := h.connect(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	before, err := c.Sent()
	if err != nil {
		t.Fatal(err)
	}
	const size = 4 << 20
	go func() { _, _ = from.Write(make([]byte, size)) }() // ReadFull fails without all bytes
	if _, err := io.ReadFull(to, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	after, err := c.Sent()
	if got := after - before; err != nil || got < size || got > size*11/10 {
		t.Errorf("%d bytes for %d, %v", got, size, err)
	}
}

// A text without the device, or with too few columns, is an error.
func TestCountersWithoutNumbers(t *testing.T) {
	const head = "Inter-|   Receive  |  Transmit\n face |bytes\n"
	if n, err := sentBytes([]byte(head + "    lo: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n  eth0:31 1 0 0 0 0 0 0 47 1 0 0 0 0 0 0\n")); n != 47 ||
		err != nil {
		t.Error(n, err)
	}
	for _, text := range []string{"", head + "lo: 1 0 0 0 0 0 0 0 2 0", "eth0: 1 2 3", "eth0: 1 0 0 0 0 0 0 0 x"} {
		if _, err := sentBytes([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// The loopback device of any machine is faster than 1 MB/s.
func TestLoopback(t *testing.T) {
	if rate, err := Loopback(); err != nil || rate < 1e6 {
		t.Errorf("%g bytes per second, %v", rate, err)
	}
}
