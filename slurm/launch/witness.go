package launch

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
)

// witness passes on what ranks and their launcher say on standard error, and
// remembers what tells why the ranks ended: between what is a consequence, and
// a launcher's paragraphs, nobody finds it.
type witness struct {
	to    io.Writer
	begun []byte // of a line
	said  string // by the first rank that failed and could say so
	died  string // who was ended by a signal, as the launcher saw it
	left  string // who ended first with a code
	code  string // which
}

// longest is how much of a line is looked at.
const longest = 4096

// What a rank says, then Open MPI and Slurm.
var (
	ownWords   = regexp.MustCompile(`^siafu: ((?:rank \d+ on |internal error: ).*)`)
	bySignal   = regexp.MustCompile(`noticed that process (rank \d+) with PID \d+ on node (\S+) exited on (signal .*?)\.?$`)
	leaver     = regexp.MustCompile(`^\s*Process name: \[\[\d+,\d+\],(\d+)\]`)
	leaverCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)
	slurmSaw   = regexp.MustCompile(`^srun: error: (\S+): task (\d+): (.*)`)
)

// Write implements io.Writer.
func (w *witness) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, behind, whole := bytes.Cut(rest, []byte("\n"))
		w.begun = append(w.begun, line[:min(len(line), longest-len(w.begun))]...)
		if whole {
			w.hear(string(w.begun))
			w.begun = w.begun[:0]
		}
		rest = behind
	}
	return w.to.Write(b)
}

// hear takes one line. The first one of each sort counts.
func (w *witness) hear(line string) {
	for _, x := range []struct {
		pattern *regexp.Regexp
		to      *string
		meaning string
	}{
		{ownWords, &w.said, "$1"},
		{bySignal, &w.died, "$1 on $2 was ended by $3"},
		{leaver, &w.left, "rank $1 ended"},
		{leaverCode, &w.code, " with exit code $1"},
		{slurmSaw, &w.left, "rank $2 on $1: $3"},
	} {
		if m := x.pattern.FindStringSubmatchIndex(line); m != nil && *x.to == "" {
			*x.to = string(x.pattern.ExpandString(nil, x.meaning, line, m))
		}
	}
}

// cause is what ended the ranks, empty if that is not known; told is what rank
// 0 has told in its status file. What a launcher says of a signal comes first:
// it names no process that it has ended itself, while the ranks may speak of
// the consequences. Of exit codes it sees those of all ranks, in any order.
func (w *witness) cause(told string) string { return cmp.Or(w.died, told, w.said, w.left+w.code) }
