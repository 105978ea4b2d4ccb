package ranks

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Only ranks of hosts that carry the run can be requested to leave. A resumed run does not repeat the requests to
// its earlier processes.
func TestLeave(t *testing.T) {
	c := quick(t)
	c.Epochs = 2
	data := generated(t, false)
	train(t, c, data)
	leave := func(host string) error { return Leave(LeaveOptions{Run: c.Out, Hosts: []string{host}}, io.Discard) }
	if err := os.Remove(filepath.Join(c.Out, "summary.json")); err != nil { // as if it were active
		t.Fatal(err)
	}
	if err := leave("a"); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "no process can leave") {
		t.Errorf("without ranks.json: %v", err)
	}
	ranks := `{"Contacts": {"Ranks": [{"Host": "b", "Own": "127.0.0.1:1"}, {"Host": "a", "Own": "127.0.0.1:2"}, {"Host": "lost"}]}}`
	if err := os.WriteFile(filepath.Join(c.Out, "ranks.json"), []byte(ranks), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"c", "lost"} {
		if err := leave(host); fault.KindOf(err) != fault.Usage || !strings.HasSuffix(err.Error(), "hosts: a, b") {
			t.Errorf("host %s: %v", host, err)
		}
	}
	if err := leave("a"); err != nil {
		t.Error(err)
	}
	c.Epochs, c.Resume = 3, "auto"
	train(t, c, data)
	if _, err := os.Stat(filepath.Join(c.Out, "leaving.txt")); err == nil {
		t.Error("the request remains")
	}
}
