package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/graph/fault"
)

// open makes hosts, or skips the test with the reason why there can be none.
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

// A link is as fast as it was told to be, in both directions, and is told again.
func TestLinksHaveTheirRates(t *testing.T) {
	h := open(t, 2)
	for _, mbit := range []float64{100, 400} {
		if err := h.Shape(mbit * 1e6 / 8); err != nil {
			t.Skip(err) // no token bucket filter in this kernel
		}
		for from := range 2 {
			m, err := h.Measure(from, 1-from)
			if err != nil {
				t.Fatal(err)
			}
			// Headers take 4 %; a busy machine may be slower than its link.
			if got := m.Bandwidth * 8 / 1e6; got > mbit || got < 0.5*mbit || m.Latency <= 0 || m.Latency > 0.1 {
				t.Errorf("from %d at %.0f Mbit/s: %.0f Mbit/s, latency %v s", from, mbit, got, m.Latency)
			}
		}
	}
}

// Closing ends what runs in a host and leaves nothing behind; so does opening,
// of hosts whose process has gone.
func TestNothingIsLeft(t *testing.T) {
	h := open(t, 2)
	sleeper := exec.Command("ip", "netns", "exec", h.Name(1), "sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("what ran in a host has ended by itself")
	}
	left(t, h.name)

	old := &Hosts{name: prefix + "4194303", subnet: "10.231.250", count: 1, dir: t.TempDir()}
	if err := old.build(); err != nil {
		t.Fatal(err)
	}
	open(t, 1)
	left(t, old.name)
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
