package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

func TestAllocated(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("n1\nn1\nn2\nn2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		env  map[string]string
		want string
		n    int
	}{
		{"none", map[string]string{"OMP_NUM_THREADS": "2"}, "", 0},
		{"PBS", map[string]string{"PBS_JOBID": "7.s", "PBS_NODEFILE": hosts, "OMP_NUM_THREADS": "2"}, "PBS n1 2 n2 2", 4},
		{"PBS without its file", map[string]string{"PBS_JOBID": "7.s", "PBS_NODEFILE": hosts + "x"}, "PBS", 0},
		{"LSF", map[string]string{"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "n1 2 n2 1"}, "LSF n1 2 n2 1", 3},
		{"LSF with threads", map[string]string{"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "n1 8 n2 4", "OMP_NUM_THREADS": "4"},
			"LSF n1 2 n2 1", 3},
	} {
		a := Allocated(func(name string) string { return tc.env[name] })
		got := []string{a.Scheduler}
		for _, h := range a.Hosts {
			got = append(got, h, string(rune('0'+a.Slots[h])))
		}
		if s := strings.TrimSpace(strings.Join(got, " ")); s != tc.want || a.Ranks() != tc.n {
			t.Errorf("%s: %q with %d ranks, want %q with %d", tc.name, s, a.Ranks(), tc.want, tc.n)
		}
	}
}

// The hosts of a job are the hostfile if there are several and none was given, and the batch system starts the daemons.
func TestAdopt(t *testing.T) {
	bin := t.TempDir()
	hosttest.Program(t, filepath.Join(bin, "pbs_tmrsh"), "#!/bin/sh\nprintf '%s|' \"$@\"\n")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	agent := Allocated(func(name string) string { return map[string]string{"PBS_JOBID": "1"}[name] }).agent
	t.Setenv("OMPI_MCA_plm_rsh_agent", "")
	two := Allocation{Scheduler: "PBS", Hosts: []string{"n2", "n1"}, Slots: map[string]int{"n1": 3, "n2": 1}, agent: agent}
	one := Allocation{Scheduler: "PBS", Hosts: []string{"n1"}, Slots: map[string]int{"n1": 3}, agent: agent}
	for _, tc := range []struct {
		name string
		o    Options
		a    Allocation
		file string
	}{
		{"one host", Options{Launcher: Mpirun}, one, ""},
		{"a hostfile", Options{Launcher: Mpirun, Hostfile: "mine"}, two, ""},
		{"in one process", Options{Launcher: InProcess}, two, ""},
		{"two hosts", Options{Launcher: Mpirun, Self: "/siafu", Ranks: 4}, two, "n2 slots=1\nn1 slots=3\n"},
	} {
		dir := t.TempDir()
		given := tc.o.Hostfile
		if err := tc.o.adopt(tc.a, dir); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "job-hosts"))
		if string(text) != tc.file || tc.file == "" && (tc.o.Hostfile != given || tc.o.agent != "") {
			t.Errorf("%s: hostfile %s: %q", tc.name, tc.o.Hostfile, text)
		}
		if tc.file == "" {
			continue
		}
		tc.o.dialect = &openMPI
		line := strings.Join(tc.o.mpirun(place{}), " ")
		if !strings.Contains(line, " --hostfile "+tc.o.Hostfile+" --mca orte_leave_session_attached 1 "+
			"--mca plm_rsh_agent "+dir+"/agent --mca plm_rsh_no_tree_spawn 1 ") {
			t.Error(line)
		}
		if err := tc.o.translate(dir); err != nil {
			t.Fatal(err)
		}
		if line := tc.o.hydra(place{sessions: dir}); !slices.Contains(line, "-launcher-exec") || !slices.Contains(line, dir+"/agent") {
			t.Error(line)
		}
		// Open MPI passes one word, and Hydra several with quotes.
		for _, args := range [][]string{{"n1", ` orted -mca ess "env"`}, {"n1", `"/usr/bin/proxy"`, "--port", "x:1"}} {
			out, err := exec.Command(dir+"/agent", args...).CombinedOutput()
			if want := "n1|sh|-c|" + strings.Join(args[1:], " ") + "|"; err != nil || string(out) != want {
				t.Errorf("%q %v, want %q", out, err, want)
			}
		}
	}
	t.Setenv("OMPI_MCA_plm_rsh_agent", "ssh -p 2")
	o := Options{Launcher: Mpirun}
	if err := o.adopt(two, t.TempDir()); err != nil || o.agent != "" {
		t.Errorf("%s replaces the agent of the environment: %v", o.agent, err)
	}
}
