package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/internal/fault"
)

// All rates are printed, with the epoch of a dataset, and no file remains.
func TestDisk(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "siafu-test-") // /tmp is often in memory
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 900, Features: 8, Classes: 3, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	o := DiskOptions{Dir: dir, Size: "17MB", Seconds: 0.001, Memory: "1MB", Threads: 1, Data: data, Limit: "1GB"}
	var out strings.Builder
	if err := o.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"write, ", "read, ", "mapped, page faults", "random rows of 128 bytes, 1 threads", "Start: ", "Disk: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("files remain: %v, %v", list, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := o.Run(stopped, &out); err == nil {
		t.Error("an interrupted measurement ends without an error")
	}
	for name, tc := range map[string]struct {
		set  func(*DiskOptions)
		kind fault.Kind
	}{
		"size":   {func(o *DiskOptions) { o.Size = "1MB" }, fault.Usage},
		"space":  {func(o *DiskOptions) { o.Size = "1000TB" }, fault.IO},
		"memory": {func(o *DiskOptions) { o.Memory = "much" }, fault.Usage},
		"folder": {func(o *DiskOptions) { o.Dir += "/none" }, fault.Missing},
	} {
		bad := o
		tc.set(&bad)
		if err := bad.Run(t.Context(), &out); fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
