package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// nasty are names that scripts can hold.
var nasty = []string{
	"two words", "tail ", " head", "it's", `a "quoted" one`, "#no comment", "a#b", "$HOME `x` $(x)", "a;b&c|d>e", "100%", "%j%A%%x",
	"*", "ä ö", "x=y", "-x", "~", "!x", "a\xffb", "--out=y", strings.Repeat("long ", 40),
}

// Names that a script cannot contain are refused before anything is written.
func TestRefusedNames(t *testing.T) {
	for _, tc := range []struct {
		name, run string
		says      string
	}{
		{"a\nb", "run", "--job-name"},
		{"a\n#SBATCH --uid=0", "run", "--job-name"},
		{"a\x00b", "run", "--job-name"},
		{"a\tb", "run", "--job-name"},
		{"a JobState=COMPLETED", "run", "--job-name"},
		{"x", "a\nb", "--out"},
		{"x", "a\rb", "--out"},
		{"x", "a\x00b", "--out"},
		{"x", `a\b`, "--out"},
	} {
		t.Run(tc.name+tc.run, func(t *testing.T) {
			t.Chdir(t.TempDir())
			j := plainJob()
			j.JobName, j.Run, j.DryRun = tc.name, tc.run, true
			_, err := j.Submit()
			if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %s", err, tc.says)
			}
			if left, _ := os.ReadDir("."); len(left) > 0 {
				t.Errorf("it has written %s", left)
			}
		})
	}
}

// directives returns the options of a script as sbatch takes them apart.
func directives(t *testing.T, script string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.SplitSeq(script, "\n") {
		rest, is := strings.CutPrefix(line, "#SBATCH")
		if !is {
			continue
		}
		words := sbatchWords(rest)
		name, value, ok := strings.Cut(strings.Join(words, ""), "=")
		if len(words) != 1 || !ok && name != "--requeue" || found[name] != "" {
			t.Errorf("%q is %q", line, words)
		}
		found[name] = value
	}
	return found
}

// sbatchWords takes a line apart as Slurm 22.05 does.
func sbatchWords(line string) (words []string) {
	var word []byte
	var begun, escaped bool
	var quote byte
	for _, c := range []byte(line + " ") {
		switch {
		case escaped:
			word, begun, escaped = append(word, c), true, false
		case c == '\\':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word = append(word, c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == '#':
			if begun {
				words = append(words, string(word))
			}
			return words
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if begun {
				words = append(words, string(word))
			}
			word, begun = nil, false
		default:
			word, begun = append(word, c), true
		}
	}
	return words
}

// expand makes a file name of Slurm's pattern, as slurmd does.
func expand(pattern string) string {
	return strings.NewReplacer("%%", "%", "%j", "7", "%A", "7", "%a", "1").Replace(pattern)
}

// evaluate runs a script in bash, in which each command is a builtin or "program", and returns the
// arguments of program.
func evaluate(t *testing.T, script string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	parse := exec.Command(bash, "-n")
	parse.Stdin = strings.NewReader(script)
	if out, err := parse.CombinedOutput(); err != nil {
		t.Fatalf("%v %s\n%s", err, out, script)
	}
	cmd := exec.Command(bash)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"PATH=/nonexistent", "SLURM_CPUS_PER_TASK=3", "SLURM_ARRAY_TASK_ID=1", "SLURM_JOB_ID=7"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// printer returns a program that prints its arguments, each followed by a NUL.
func printer(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's a printer")
	hosttest.Program(t, path, "#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
	return path
}

// holds asserts that the two scripts of a job hold what it is made of.
func holds(t *testing.T, j *Job) {
	t.Helper()
	train, run, log := []string{"launch"}, j.Run, "-7.out"
	if j.Settings != nil {
		run, log = j.Run+"/"+strings.ReplaceAll(j.Settings[1], " ", ","), "-7_1.out"
	}
	if j.Container != "" {
		train = append(train, "--container", j.Container)
	}
	train = append(append(train, "--restarts", "3", "train"), j.Train...)
	if !contains(j.Train, "--threads") {
		train = append(train, "--threads", "3")
	}
	if j.Settings != nil {
		for s := range strings.FieldsSeq(j.Settings[1]) {
			train = append(train, "--"+s)
		}
	}
	train = append(train, "--out", run, "--resume", "auto")
	if got := evaluate(t, j.Script()); !slices.Equal(got, train) {
		t.Errorf("siafu gets %q,\nwant %q", got, train)
	}
	d := directives(t, j.Script())
	if d["--job-name"] != j.JobName || expand(d["--output"]) != j.Run+log || d["--signal"] != "B:USR1@120" {
		t.Errorf("sbatch gets %q of name %q and run %q", d, j.JobName, j.Run)
	}
	p := directives(t, j.PartitionScript())
	if p["--job-name"] != j.JobName+"-partition" || expand(p["--output"]) != j.Run+"-partition-7.out" || p["--ntasks"] != "1" {
		t.Errorf("sbatch gets %q of name %q and run %q", p, j.JobName, j.Run)
	}
	if want := 8 + min(1, len(j.Settings)); len(d) != want || len(p) != 5 {
		t.Errorf("%d and %d options, want %d and 5: %q %q", len(d), len(p), want, d, p)
	}
	if j.Container != "" {
		return // its command is another's
	}
	if got, want := evaluate(t, j.PartitionScript()), append([]string{"partition"}, j.Parts...); !slices.Equal(got, want) {
		t.Errorf("siafu gets %q,\nwant %q", got, want)
	}
}

// named returns a job in which everything that a user names is named so.
func named(self, name, run, data, container string) *Job {
	j := plainJob()
	j.Self, j.JobName, j.Run, j.Container = self, name, run, container
	j.Train = []string{data, "--epochs", "9", "--note=" + data}
	j.Parts = []string{data, "--parts", "7"}
	return j
}

func TestNastyNames(t *testing.T) {
	self := printer(t)
	for _, name := range nasty {
		t.Run(name, func(t *testing.T) {
			j := named(self, name, "runs/"+name, name, "")
			if err := j.check(); err != nil && !field.MatchString(name) {
				t.Fatal(err)
			}
			holds(t, j)
			j.Settings = []string{"seed=1", "seed=2 hidden=8"}
			j.Container = "in " + name
			holds(t, j)
		})
	}
}

// For any names, scripts either contain them exactly or are refused.
func FuzzScript(f *testing.F) {
	self := printer(f)
	for i, name := range nasty {
		next := nasty[(i+1)%len(nasty)]
		f.Add(name, next, "data/"+name, next)
	}
	f.Add("a\n#SBATCH --uid=0", "x", "x", "")
	f.Add("x", "x\n#SBATCH --uid=0", "x\ntouch y", "")
	f.Add("x", `a\`, `a\`, `\`)
	f.Fuzz(func(t *testing.T, name, run, data, container string) {
		if strings.Contains(data+container, "\x00") {
			t.Skip("no argument holds it")
		}
		j := named(self, name, run, data, container)
		if j.check() != nil {
			return
		}
		holds(t, j)
	})
}

func ExampleJob_LogPattern() {
	j := Job{Run: "runs/100% mine"}
	fmt.Println(value(j.LogPattern()), j.Log("7"))
	// Output: "runs/100%% mine-%j.out" runs/100% mine-7.out
}
