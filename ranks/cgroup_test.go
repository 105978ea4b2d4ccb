package ranks

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestGroupMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, math.MaxInt64},
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
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/x\n5:memory:/slurm/job_7\n",
			"sys/fs/cgroup/memory/slurm/memory.limit_in_bytes":    "9000",
			"sys/fs/cgroup/memory/slurm/memory.usage_in_bytes":    "8000",
			"sys/fs/cgroup/memory/slurm/memory.stat":              "inactive_file 1\ntotal_inactive_file 500\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712",
			"sys/fs/cgroup/memory/slurm/job_7/unrelated.in_bytes": "1",
		}, 1500},
		"damaged": {map[string]string{"proc/self/cgroup": "what\n0::/../../..\n", "memory.max": "7"}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range tc.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := groupMemory(root); got != tc.want {
				t.Errorf("%d bytes, expected %d", got, tc.want)
			}
		})
	}
}
