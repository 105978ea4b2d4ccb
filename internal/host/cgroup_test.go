package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGroupMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, Unlimited},
		"version 2": {map[string]string{
			"proc/self/cgroup":                       "0::/job/step\n",
			"sys/fs/cgroup/job/memory.max":           "1000\n",
			"sys/fs/cgroup/job/memory.current":       "700\n",
			"sys/fs/cgroup/job/memory.stat":          "anon 300\nfile 400\ninactive_file 400\n",
			"sys/fs/cgroup/job/step/memory.max":      "max\n",
			"sys/fs/cgroup/job/step/memory.current":  "700\n",
			"sys/fs/cgroup/memory.max":               "max\n",
			"sys/fs/cgroup/memory/memory.limit_here": "5\n",
		}, 700},
		"the inner one is less": {map[string]string{
			"proc/self/cgroup":                      "0::/job/step\n",
			"sys/fs/cgroup/job/memory.max":          "1000",
			"sys/fs/cgroup/job/step/memory.max":     "100",
			"sys/fs/cgroup/job/step/memory.current": "150",
		}, 0},
		"full to the byte": {map[string]string{
			"proc/self/cgroup":                 "0::/job\n",
			"sys/fs/cgroup/job/memory.max":     "1000",
			"sys/fs/cgroup/job/memory.current": "1000",
		}, 0},
		"full of files": {map[string]string{
			"proc/self/cgroup":                 "0::/job\n",
			"sys/fs/cgroup/job/memory.max":     "1000",
			"sys/fs/cgroup/job/memory.current": "1000",
			"sys/fs/cgroup/job/memory.stat":    "anon 100\nactive_file 500\ninactive_file 300\nshmem 100",
		}, 800},
		"version 1 beside 2, full above": {map[string]string{
			"proc/self/cgroup": "3:cpu,memory:/a/b\n1:name=systemd:/a/b\n0::/\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9000",
			"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "100",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "5000",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes":   "5000",
			"sys/fs/cgroup/memory/a/memory.stat":             "active_file 3000\ntotal_active_file 0\n",
		}, 0},
		"a container's own root": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "500",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "200",
		}, 300},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/x\n5:memory:/slurm/job_7\n",
			"sys/fs/cgroup/memory/slurm/memory.limit_in_bytes":    "9000",
			"sys/fs/cgroup/memory/slurm/memory.usage_in_bytes":    "8000",
			"sys/fs/cgroup/memory/slurm/memory.stat":              "inactive_file 1\ntotal_inactive_file 500\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712",
			"sys/fs/cgroup/memory/slurm/job_7/unrelated.in_bytes": "1",
		}, 1500},
		"damaged": {map[string]string{"proc/self/cgroup": "what\n0::/../../..\n", "memory.max": "7"}, Unlimited},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeTree(t, root, tc.files)
			if got := groupMemory(root).Available; got != tc.want {
				t.Errorf("%d bytes, expected %d", got, tc.want)
			}
		})
	}
}

// A host that has nothing left is not one that does not say what it has.
func TestAvailableMemory(t *testing.T) {
	full := map[string]string{"proc/self/cgroup": "0::/j\n", "sys/fs/cgroup/j/memory.max": "8", "sys/fs/cgroup/j/memory.current": "8"}
	for name, tc := range map[string]struct {
		meminfo string
		groups  map[string]string
		want    int64
	}{
		"says nothing":       {"", nil, Unlimited},
		"an old kernel":      {"MemTotal:  16 kB\nMemFree:  8 kB\n", nil, Unlimited},
		"no group":           {"MemTotal:  16 kB\nMemAvailable:   4 kB\n", nil, 4096},
		"nothing left":       {"MemAvailable:   0 kB\n", nil, 0},
		"a full group":       {"MemAvailable:   4 kB\n", full, 0},
		"a full group alone": {"", full, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeTree(t, root, tc.groups)
			writeTree(t, root, map[string]string{"proc/meminfo": tc.meminfo})
			if got := memoryIn(root).Available; got != tc.want {
				t.Errorf("%d bytes, expected %d", got, tc.want)
			}
		})
	}
}

// writeTree writes files below a root.
func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A lack that passes is waited for, one that cannot pass is not.
func TestAwaitMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		asked int64
		seen  []Memory
		want  Memory
	}{
		"there":               {5, []Memory{{Available: 5, Most: 8}}, Memory{Available: 5, Most: 8}},
		"there in a moment":   {5, []Memory{{Most: 8}, {Available: 4, Most: 8}, {Available: 6, Most: 8}}, Memory{Available: 6, Most: 8}},
		"more than there are": {9, []Memory{{Available: 2, Most: 8}}, Memory{Available: 2, Most: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			got := await(tc.asked, func() Memory { looks++; return tc.seen[looks-1] })
			if got != tc.want || looks != len(tc.seen) {
				t.Errorf("%+v after %d looks", got, looks)
			}
		})
	}
}
