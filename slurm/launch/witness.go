package launch

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// witness forwards the standard error of ranks and their launcher, and finds the reason why the
// ranks ended. A user could not find it among the consequences and the launcher's paragraphs.
type witness struct {
	to    io.Writer
	begun []byte              // incomplete line
	block []byte              // paragraph of a launcher, between lines of dashes
	said  string              // error of the first rank that failed and could print it
	died  string              // the rank that a signal ended, as reported by the launcher
	left  string              // the rank that ended first with an exit code
	code  string              // this exit code
	alien string              // a host whose name has no address
	waits map[string][]string // by waiting rank: the ranks that it waits for, "2 on host"

	survives  bool         // ranks continue after the loss of others
	explained bool         // the reports of Open MPI about a loss have been explained
	forwarded atomic.Int64 // number of signals that the launcher has forwarded
}

func newWitness(to io.Writer) *witness { return &witness{to: to, waits: map[string][]string{}} }

// longest is the maximal length of a line that is examined as a whole.
const longest = 4096

// Lines of ranks (waiting matches a world.StallError), of Open MPI and of Slurm.
var (
	waiting    = regexp.MustCompile(`: rank (\d+) has waited \S+ for ranks? (\d+ on [^ ,]+(?:, \d+ on [^ ,]+)*)`)
	joined     = regexp.MustCompile(`^siafu: rank \d+ on \S+ has joined$`) // no error
	ownWords   = regexp.MustCompile(`^siafu: ((?:rank \d+ on |internal error: ).*)`)
	bySignal   = regexp.MustCompile(`noticed that process (rank \d+) with PID \d+ on node (\S+) exited on (signal .*?)\.?$`)
	leaver     = regexp.MustCompile(`^\s*Process name: \[(?:\[\d+,\d+\]|[^],]+@\d+),(\d+)\]`)
	leaverCode = regexp.MustCompile(`^\s*Exit code:\s+(\d+)`)
	sshAlien   = regexp.MustCompile(`^ssh: Could not resolve hostname (\S+): `)
	slurmSaw   = regexp.MustCompile(`^srun: error: (\S+): task (\d+): (.*)`)
)

// consequences matches paragraphs of Open MPI about the end of a rank, which conclude replaces by a
// sentence.
var consequences = regexp.MustCompile(`Primary job +terminated normally, but|` +
	`(?:mpirun|prterun) detected that one or more processes exited|(?:mpirun|prterun) noticed that process rank|(?:MPI_ABORT was|MPI_Abort\(\)) invoked on rank|` +
	`prterun has exited due to process rank`)

// forwarded matches the line of Open MPI about a signal that launch has forwarded.
var forwarded = regexp.MustCompile(`^mpirun: Forwarding signal \d+ to job$`)

// lossNoise matches lines of Open MPI that a lost rank or host causes. With --survive, explanation replaces
// them.
var lossNoise = regexp.MustCompile(`^\[[^]]+:\d+\] (?:\[\[.*\]\]? )?(?:PMIX ERROR|ORTE_ERROR_LOG|PMIX_ERROR_LOG)\b`)

// explanation replaces the lines of lossNoise.
const explanation = "siafu: launch: Open MPI reports errors about a lost rank, which are left out: the other ranks continue\n"

// rule matches the lines around a paragraph of Open MPI.
var rule = regexp.MustCompile(`^-{60,}$`)

// longestBlock is the maximal length of a buffered paragraph.
const longestBlock = 1 << 14

// Write implements io.Writer. It never fails: the end of a terminal must not close the pipe of
// ranks that are about to save.
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

// pass evaluates a line, and forwards it unless it belongs to a paragraph in consequences.
func (w *witness) pass(line []byte) {
	line = bytes.TrimLeft(line, "\x00") // PRRTE puts it before some lines
	text := strings.TrimSuffix(string(line), "\n")
	w.hear(text)
	ruled := rule.MatchString(text)
	if ruled || w.block != nil {
		w.block = append(w.block, line...)
	}
	switch {
	case forwarded.MatchString(text):
		w.forwarded.Add(1)
	case w.survives && lossNoise.MatchString(text):
		if !w.explained {
			_, _ = io.WriteString(w.to, explanation)
		}
		w.explained = true
	case w.block == nil:
		_, _ = w.to.Write(line)
	case ruled && len(w.block) > len(line), len(w.block) > longestBlock: // the end of a paragraph, or no paragraph
		w.hear(strings.Join(strings.Fields(strings.Trim(string(w.block), "-\n")), " ")) // whose sentences PRRTE breaks into lines
		if !consequences.Match(w.block) {
			_, _ = w.to.Write(w.block)
		}
		w.block = nil
	}
}

// flush forwards an incomplete paragraph and line.
func (w *witness) flush() {
	_, _ = w.to.Write(append(w.block, w.begun...))
	w.block, w.begun = nil, nil
}

// hear evaluates a line. It uses only the first line of each kind.
func (w *witness) hear(line string) {
	if joined.MatchString(line) {
		return
	}
	if m := waiting.FindStringSubmatch(line); m != nil && w.said == "" { // later lines may be consequences of the failure
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
		{sshAlien, &w.alien, "$1"},
		{slurmSaw, &w.left, "rank $2 on $1: $3"},
	} {
		if m := x.pattern.FindStringSubmatchIndex(line); m != nil && *x.to == "" {
			*x.to = string(x.pattern.ExpandString(nil, x.meaning, line, m))
		}
	}
}

// silent follows the waits from a rank, and returns the first awaited rank that has not reported a
// wait itself.
func (w *witness) silent(rank string) string {
	seen := map[string]bool{}
	for queue := []string{rank}; len(queue) > 0; queue = queue[1:] {
		for _, next := range w.waits[queue[0]] {
			number, _, _ := strings.Cut(next, " ")
			if w.waits[number] == nil {
				return next
			}
			if !seen[number] {
				seen[number] = true
				queue = append(queue, number)
			}
		}
	}
	return ""
}

// words returns the error of the first rank that failed. If that rank waited for a rank that waits
// itself, words adds the rank at the end of this chain, which blocks all others.
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

// cause returns the reason why the ranks ended, or "" if it is unknown. told is the error in the
// status file. The launcher's report of a signal comes first, because a launcher does not report
// processes that it has ended itself, and errors of ranks may be consequences. Its report of an exit
// code comes last, because it reports the codes of all ranks in any order.
func (w *witness) cause(told string) string { return cmp.Or(w.died, told, w.words(), w.left+w.code) }
