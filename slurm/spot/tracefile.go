package spot

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
)

const op = "spot"

// Formats of trace files.
const (
	ByNode  = "events"    // lines "ms,add|remove,node"; this package writes zones as node@zone
	ByCount = "instances" // lines "seconds,instances"
)

// Write writes a trace in a format. ByCount has no zones. It overwrites only another trace.
func (t *Trace) Write(path, format string) error {
	if format != ByNode && format != ByCount {
		return fault.New(fault.Usage, op, "", "--format=%q", format).Then("choose from %s, %s", ByNode, ByCount)
	}
	if err := inventory.Overwrite(op, path, isTrace); err != nil {
		return err
	}
	return durable.Write(op, path, func(w io.Writer) error {
		out, present := bufio.NewWriter(w), 0
		for moment := range t.moments() {
			for _, e := range moment {
				verb := "add"
				if present++; !e.Add {
					verb, present = "remove", present-2
				}
				if format == ByNode {
					fmt.Fprintf(out, "%d,%s,%s\n", int64(math.Round(e.Seconds*1000)), verb, t.name(e.Node))
				}
			}
			if format == ByCount {
				fmt.Fprintf(out, "%s,%d\n", strconv.FormatFloat(moment[0].Seconds, 'f', -1, 64), present)
			}
		}
		return out.Flush()
	})
}

// name returns the name of a node in files.
func (t *Trace) name(node int) string {
	if node < len(t.Names) {
		return t.Names[node]
	}
	if zone := t.zone(node); zone != unknownZone {
		return fmt.Sprintf("node%d@%d", node+1, zone)
	}
	return fmt.Sprintf("node%d", node+1)
}

// isTrace reports whether a file begins like a trace.
func isTrace(head []byte) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(string(head)), "\n")
	d := &decoder{t: &Trace{}, nodes: map[string]int{}, r: rand.New(rand.NewPCG(1, 0))}
	return d.line(strings.Split(first, ",")) == nil
}

// ReadTrace reads a file in either format. The trace ends with its last event. Lines
// "seconds,instances" do not name machines: each decrease removes random machines, with a fixed
// seed. An invalid line is a fault of kind Data with its number.
func ReadTrace(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	defer f.Close()
	d := &decoder{t: &Trace{}, nodes: map[string]int{}, r: rand.New(rand.NewPCG(1, 0))}
	lines, number := bufio.NewScanner(f), 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := d.line(strings.Split(line, ",")); err != nil {
			return nil, fault.New(fault.Data, op, path, "line %d: %q: %v", number, shorten(line), err).
				Then("write lines \"seconds,instances\" or \"ms,add|remove,node\" in order of time")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.Data, op, path, "line %d: %v", number+1, err).Then("use a text file with short lines")
	}
	if len(d.t.Events) == 0 {
		return nil, fault.New(fault.Data, op, path, "no machine joins").Then("use a trace of at least one machine")
	}
	return d.t, nil
}

func shorten(line string) string { return line[:min(len(line), 60)] }

// decoder reads lines of a trace.
type decoder struct {
	t       *Trace
	columns int            // of the first line
	nodes   map[string]int // present nodes by name
	present []int          // present nodes of a file of counts
	r       *rand.Rand
}

func (d *decoder) line(cells []string) error {
	if d.columns == 0 {
		d.columns = len(cells)
	}
	if len(cells) != d.columns || len(cells) < 2 || len(cells) > 3 {
		return fmt.Errorf("%d columns", len(cells))
	}
	for k := range cells {
		cells[k] = strings.TrimSpace(cells[k])
	}
	at, err := strconv.ParseFloat(cells[0], 64)
	if err != nil || !(at >= 0 && at <= 3600_000*maxHours) {
		return fmt.Errorf("time %q is not a number of at most %d hours", cells[0], maxHours)
	}
	if len(cells) == 3 {
		at /= 1000
	}
	if at > 3600*maxHours {
		return fmt.Errorf("time %q is beyond %d hours", cells[0], maxHours)
	}
	if at < d.t.Seconds {
		return fmt.Errorf("time %q is before the previous line", cells[0])
	}
	d.t.Seconds = at
	if len(cells) == 2 {
		return d.count(at, cells[1])
	}
	return d.event(at, cells[1], cells[2])
}

// count changes the number of machines.
func (d *decoder) count(at float64, cell string) error {
	n, err := strconv.Atoi(cell)
	if err != nil || n < 0 || n > maxMachines {
		return fmt.Errorf("%q is not a number of machines up to %d", cell, maxMachines)
	}
	for len(d.present) < n {
		d.present = append(d.present, d.t.add(at, unknownZone))
	}
	for len(d.present) > n {
		k := d.r.IntN(len(d.present))
		d.t.lose(at, d.present[k])
		d.present = slices.Delete(d.present, k, k+1)
	}
	return nil
}

// event adds or removes a named machine.
func (d *decoder) event(at float64, verb, name string) error {
	node, present := d.nodes[name]
	switch {
	case name == "":
		return fmt.Errorf("no node")
	case verb == "add" && present:
		return fmt.Errorf("node %q is already present", name)
	case verb == "add":
		zone := unknownZone
		if _, text, is := strings.Cut(name, "@"); is {
			var err error
			if zone, err = strconv.Atoi(text); err != nil || zone < 0 || zone >= maxMachines {
				return fmt.Errorf("zone %q of node %q is not a number", text, name)
			}
		}
		d.nodes[name] = d.t.add(at, zone)
		d.t.Names = append(d.t.Names, name)
	case verb == "remove" && present:
		d.t.lose(at, node)
		delete(d.nodes, name)
	case verb == "remove":
		return fmt.Errorf("node %q is not present", name)
	default:
		return fmt.Errorf("%q is neither add nor remove", verb)
	}
	return nil
}
