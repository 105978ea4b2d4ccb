package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/scratch"
)

const opMetis = "bench metis"

// metis is gpmetis, the program of METIS (Karypis and Kumar), with a dataset in its format.
type metis struct {
	ds      *graph.Dataset
	program string
	missing string // reason why it is omitted
	tmp     *scratch.Folder
}

// newMetis writes the dataset to a temporary folder, if gpmetis is installed. close removes
// it.
func newMetis(ds *graph.Dataset) (*metis, error) {
	m := &metis{ds: ds}
	var err error
	if m.program, err = exec.LookPath("gpmetis"); err != nil {
		m.missing = "METIS: gpmetis is not installed (Debian's package metis)"
		return m, nil
	}
	if m.tmp, err = scratch.Temp(); err != nil {
		return nil, fault.System(opMetis, "", err)
	}
	for name, weighted := range map[string]bool{plainGraph: false, weightedGraph: true} {
		if err := m.write(filepath.Join(m.tmp.Path, name), weighted); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

// Files of the folder: in the second one, a vertex's weights also include its edges and
// whether it is trained on.
const (
	plainGraph    = "plain"
	weightedGraph = "weighted"
)

func (m *metis) close() {
	if m.tmp != nil {
		m.tmp.Close()
	}
}

// partitioners returns one that balances only vertices, METIS's default, and one that balances
// the same as siafu, with the same slack.
func (m *metis) partitioners() []partitioner {
	return []partitioner{
		{"METIS, vertices only", m.divide(plainGraph, "-ufactor=50")},
		{"METIS, all three", m.divide(weightedGraph, "-ubvec=1.05 1.05 1.10")},
	}
}

// write writes the graph in the format of METIS's manual. An edge in both directions of a
// directed graph has weight 2, because it is cut twice.
func (m *metis) write(path string, weighted bool) error {
	f, err := os.Create(path)
	if err != nil {
		return fault.System(opMetis, path, err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	edges := 0
	for v := range m.ds.In.Rows() {
		edges += len(slices.Compact(m.neighbours(v)))
	}
	format := "000" // METIS's code of the weights, and their number per vertex
	switch {
	case weighted && m.ds.Meta.Directed:
		format = "011 3"
	case weighted:
		format = "010 3"
	case m.ds.Meta.Directed:
		format = "001"
	}
	fmt.Fprintf(w, "%d %d %s\n", m.ds.In.Rows(), edges/2, format)
	for v := range m.ds.In.Rows() {
		m.writeRow(w, v, weighted)
	}
	if err := w.Flush(); err != nil {
		return fault.System(opMetis, path, err)
	}
	return nil
}

// neighbours returns the neighbours of v in ascending order, twice if a directed graph has
// edges in both directions.
func (m *metis) neighbours(v int) []uint32 {
	row := slices.Clone(m.ds.In.Row(v))
	if m.ds.Meta.Directed {
		row = append(row, m.ds.Out.Row(v)...)
		slices.Sort(row)
	}
	return row
}

func (m *metis) writeRow(w *bufio.Writer, v int, weighted bool) {
	var line []byte
	number := func(n int) { line = append(strconv.AppendInt(line, int64(n), 10), ' ') }
	if weighted {
		train := 0
		if m.ds.Split[v] == graph.SplitTrain {
			train = 1
		}
		number(1)
		number(len(m.ds.In.Row(v)))
		number(train)
	}
	for row := m.neighbours(v); len(row) > 0; {
		both := 1
		if len(row) > 1 && row[1] == row[0] {
			both = 2
		}
		number(int(row[0]) + 1)
		if m.ds.Meta.Directed {
			number(both)
		}
		row = row[both:]
	}
	w.Write(append(line, '\n'))
}

// gpmetis's own figures in its output.
var (
	metisSeconds = regexp.MustCompile(`Partitioning:\s+([0-9.]+) sec`)
	metisMemory  = regexp.MustCompile(`Max memory used:\s+([0-9.]+) MB`)
)

// divide runs gpmetis; time and memory are its own figures, without reading
// and writing files.
func (m *metis) divide(file, slack string) func(context.Context, int, uint64) (partitionResult, error) {
	return func(ctx context.Context, parts int, seed uint64) (d partitionResult, err error) {
		input := filepath.Join(m.tmp.Path, file)
		cmd := exec.CommandContext(ctx, m.program, slack, fmt.Sprintf("-seed=%d", seed), input, strconv.Itoa(parts))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return d, fault.New(fault.Runtime, opMetis, m.program, "%v: %.200q", err, bytes.TrimSpace(out[max(0, len(out)-200):])).
				Then("remove gpmetis from PATH to measure without it")
		}
		output := fmt.Sprintf("%s.part.%d", input, parts)
		d.owner, err = partition.Assign(m.ds, partition.Options{Method: "file:" + output, Parts: parts})
		d.seconds = firstNumber(metisSeconds, out)
		d.bytes = int64(firstNumber(metisMemory, out) * (1 << 20))
		return d, err
	}
}

// firstNumber returns the number that the pattern captures, or 0.
func firstNumber(pattern *regexp.Regexp, text []byte) float64 {
	found := pattern.FindSubmatch(text)
	if found == nil {
		return 0
	}
	x, _ := strconv.ParseFloat(string(found[1]), 64) // the pattern also admits 1.2.3
	return x
}
