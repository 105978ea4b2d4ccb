package launch

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"
)

// witness passes on what ranks and their launcher say on standard error, and
// remembers what tells why the ranks ended: between what is a consequence, and
// a launcher's paragraphs, nobody finds it.
type witness struct {
	to    io.Writer
	begun []byte              // of a line
	block []byte              // of a launcher's paragraph, between lines of dashes
	said  string              // by the first rank that failed and could say so
	died  string              // who was ended by a signal, as the launcher saw it
	left  string              // who ended first with a code
	code  string              // which
	waits map[string][]string // of a rank that waits long: whom it names, "2 on host"
}

func newWitness(to io.Writer) *witness { return &witness{to: to, waits: map[string][]string{}} }

// longest is how much of a line is looked at.
const longest = 4096

// What a rank says (world.StallError is its wait), then Open MPI and Slurm.
var (
	waiting    = regexp.MustCompile(`: rank (\d+) has waited \S+ for ranks? (\d+ on [^ ,]+(?:, \d+ on [^ ,]+)*)`)
	ownWords   = regexp.MustCompile(`^siafu: ((?:rank \d+ on |internal error: ).*)`)
	bySignal   = regexp.MustCompile(`noticed that process (rank \d+) with PID \d+ on node (\S+) exited on (signal .*?)\.?$`)
	leaver     = regexp.MustCompile(`^\s*Process name: \[\[\d+,\d+\],(\d+)\]`)
	leaverCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)
	slurmSaw   = regexp.MustCompile(`^srun: error: (\S+): task (\d+): (.*)`)
)

// What Open MPI says at length when a rank has ended, and launch in a sentence.
var consequences = regexp.MustCompile(`Primary job +terminated normally, but|mpirun detected that one or more processes exited|` +
	`mpirun noticed that process rank|MPI_ABORT was invoked on rank`)

// forwarded is a line of Open MPI about each signal that launch has passed on.
var forwarded = regexp.MustCompile(`^mpirun: Forwarding signal \d+ to job$`)

// rule is a line round a paragraph of Open MPI.
var rule = regexp.MustCompile(`^-{60,}$`)

// longestBlock is how much of a paragraph is kept back.
const longestBlock = 1 << 14

// Write implements io.Writer. It never fails: a terminal that is gone must not
// close the pipe of ranks that are about to save.
func (w *witness) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, behind, whole := bytes.Cut(rest, []byte("\n"))
		w.begun = append(w.begun, line...)
		if whole || len(w.begun) > longest {
			if whole {
				w.begun = append(w.begun, '\n')
			}
			w.pass(w.begun)
			w.begun = w.begun[:0]
		}
		rest = behind
	}
	return len(b), nil
}

// pass takes a line, and hands it on unless it is of a paragraph that says what launch
// says itself.
func (w *witness) pass(line []byte) {
	text := strings.TrimSuffix(string(line), "\n")
	w.hear(text)
	ruled := rule.MatchString(text)
	if ruled || w.block != nil {
		w.block = append(w.block, line...)
	}
	switch {
	case forwarded.MatchString(text):
	case w.block == nil:
		_, _ = w.to.Write(line)
	case ruled && len(w.block) > len(line), len(w.block) > longestBlock: // the paragraph's end, or there will be none
		if !consequences.Match(w.block) {
			_, _ = w.to.Write(w.block)
		}
		w.block = nil
	}
}

// flush hands on what has no end.
func (w *witness) flush() {
	_, _ = w.to.Write(append(w.block, w.begun...))
	w.block, w.begun = nil, nil
}

// hear takes one line. The first one of each sort counts.
func (w *witness) hear(line string) {
	if m := waiting.FindStringSubmatch(line); m != nil && w.said == "" { // what is said later may be of ranks that were woken to be killed
		w.waits[m[1]] = strings.Split(m[2], ", ")
	}
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

// silent follows who waits for whom from a rank on, and returns the first that
// is waited for and has not said that it waits itself.
func (w *witness) silent(rank string) string {
	met := map[string]bool{}
	for queue := []string{rank}; len(queue) > 0; queue = queue[1:] {
		for _, next := range w.waits[queue[0]] {
			number, _, _ := strings.Cut(next, " ")
			if w.waits[number] == nil {
				return next
			}
			if !met[number] {
				met[number] = true
				queue = append(queue, number)
			}
		}
	}
	return ""
}

// words are those of the first rank that failed. If it has waited for one that
// waits itself, at the end of that chain is who holds everybody up.
func (w *witness) words() string {
	m := waiting.FindStringSubmatch(w.said)
	if m == nil {
		return w.said
	}
	last := w.silent(m[1])
	if last == "" || slices.Contains(strings.Split(m[2], ", "), last) {
		return w.said
	}
	return w.said + ", which waits for rank " + last
}

// cause is what ended the ranks, empty if that is not known; told is what rank
// 0 has told in its status file. What a launcher says of a signal comes first:
// it names no process that it has ended itself, while the ranks may speak of
// the consequences. Of exit codes it sees those of all ranks, in any order.
func (w *witness) cause(told string) string { return cmp.Or(w.died, told, w.words(), w.left+w.code) }
