package plan

import (
	"fmt"
	"io"
	"strings"

	"siafu/internal/size"
	"siafu/internal/table"
	"siafu/ranks/forecast"
)

// Print prints a plan: its recommendations, and the tables if requested.
func (p *Plan) Print(w io.Writer) error {
	var b strings.Builder
	best := p.Candidates[p.Best]
	for _, line := range p.recommend() {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "%s: %d vertices, %d edges; %s %s, %d weights, %s\n",
		p.Dataset, p.Vertices, p.Edges, p.Model, p.shape(), p.Weights, best.Network)
	parts := ""
	if p.Parts > p.GraphRanks {
		parts = fmt.Sprintf(" with %d parts", p.Parts)
	}
	fmt.Fprintf(&b, "graph ranks %d%s, servers %d, ranks a host %d, a link of %s and %s a message, at most %s MB a rank\n",
		p.GraphRanks, parts, p.Servers, p.RanksPerHost, rate(p.Bandwidth), duration(p.Latency), megabytes(p.Memory))
	if p.all {
		p.tables(&b, best)
	} else {
		fmt.Fprintf(&b, "largest graph rank with %s %s MB, %s MB of rows an epoch with codec %s%s; --all prints everything\n",
			best.Method, megabytes(best.Codecs[0].Peak), megabytes(best.Codecs[0].Traffic.Sent), best.Codecs[0].Codec, best.pairs())
	}
	p.printStages(&b)
	if err := p.PrintDisk(&b); err != nil {
		return err
	}
	for _, line := range p.Verdict {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tables prints all tables.
func (p *Plan) tables(b *strings.Builder, best *Candidate) {
	fmt.Fprintf(b, "\nMemory of the largest graph rank with %s (rank %d), MB\n", best.Method, best.Largest)
	p.terms(b, best.Memory)
	if best.Recomputed > 0 {
		fmt.Fprintf(b, "Activations and their gradients, MB: kept %s, with --recompute %s\n",
			megabytes(best.Kept), megabytes(best.Recomputed))
	}
	if p.Servers > 0 {
		fmt.Fprintf(b, "Memory of a server, MB\n")
		p.terms(b, p.Server)
	}
	fmt.Fprintf(b,
		"Memory before training, MB: importing %s, partitioning %s; %s and %s of it are pages of files, which the system can take back\n",
		megabytes(p.Import.Peak()+forecast.Program), megabytes(p.Partitioning.Peak()+forecast.Program),
		megabytes(p.Import.Of(forecast.Mapped)), megabytes(p.Partitioning.Of(forecast.Mapped)))
	p.bytes(b)
	if p.LambdaMemory > 0 {
		p.functions(b)
	}
	if p.Timed {
		p.ghosts(b, best)
		p.epochs(b)
	}
}

// terms prints the table of memory.
func (p *Plan) terms(w io.Writer, m forecast.Memory) {
	t := table.Right("data", "MB", "kind")
	for _, term := range m {
		t.Add(term.Name, megabytes(term.Bytes), term.Kind)
	}
	t.Add("the program", megabytes(forecast.Program))
	t.Add("at most at a time", megabytes(size.Sum(m.Peak(), forecast.Program)))
	t.Text(w)
}

// bytes prints the table of traffic by partitioner and codec.
func (p *Plan) bytes(w io.Writer) {
	fmt.Fprintf(w, "\nGhost rows of all ranks an epoch, MB (≤: at most; what a lossless codec saves depends on the rows)\n")
	linked := p.Candidates[0].Pairs != nil
	if linked {
		fmt.Fprintln(w,
			"pairs: in addition the rows of sampled vertices and their gradients, with any codec, mean ± standard deviation over samples")
	}
	columns := []string{"partitioner", "cut|%.1f %%", "ghosts", "largest rank MB"}
	if linked {
		columns = append(columns, "pairs")
	}
	for _, c := range p.Candidates[0].Codecs {
		columns = append(columns, c.Codec)
	}
	t := table.Right(columns...)
	for _, one := range p.Candidates {
		row := []any{one.name(), 100 * one.Cut, one.Ghosts, megabytes(one.Codecs[0].Peak)}
		if linked {
			row = append(row, megabytes(one.Pairs.Sent)+" ± "+megabytes(one.Pairs.Deviation))
		}
		for _, c := range one.Codecs {
			most := "≤ "
			if c.Traffic.Exact {
				most = ""
			}
			if !c.Fits {
				most = "too large: " + most
			}
			row = append(row, most+megabytes(c.Traffic.Sent))
		}
		t.Add(row...)
	}
	t.Text(w)
}

// functions prints the table of invocations.
func (p *Plan) functions(w io.Writer) {
	fmt.Fprintf(w, "\nTensor work in functions with %d MB, %s: an epoch with an evaluation, and the run of %d epochs (no attempt "+
		"repeated; GB-seconds and dollars without the time for bytes and starts)\n",
		p.LambdaMemory, p.Tariff, p.Epochs)
	t := table.Right("partitioner", "", "invocations", "MB to them", "MB back", "GB-seconds|%.3f", "USD|%.6f")
	for _, one := range p.Candidates {
		line := func(what string, f forecast.Functions) {
			t.Add(one.Method, what, f.Invocations, megabytes(f.To), megabytes(f.From), f.GBSeconds, f.USD)
		}
		line("epoch", one.Functions.Epoch)
		line("run", one.Functions.Run)
	}
	t.Text(w)
}

// epochs prints the table of times.
func (p *Plan) epochs(w io.Writer) {
	if p.LambdaMemory > 0 {
		fmt.Fprint(w, "\nIf tensor work were done on the ranks:")
	}
	fmt.Fprintf(w,
		"\nAn epoch, seconds: hosts like this one with %d threads, in an order of vertices no better than the dataset's\n", p.Threads)
	t := table.Right("partitioner", "codec", "tensor|%.4f", "gather|%.4f", "codec|%.4f", "computing|%.4f", "rows|%.4f", "pairs|%.4f",
		"weights|%.4f", "not hidden|%.4f", "nopipe|%.4f", "pipe|%.4f")
	for _, one := range p.Candidates {
		for _, c := range one.Codecs {
			e := c.Epoch
			t.Add(one.Method, c.Codec, e.Tensor, e.Gather, e.Codec, e.Compute(), e.Rows, e.Pairs, e.Weights,
				e.Exposed+e.Pairs+e.Weights, e.Sequential, e.Overlapping)
		}
	}
	t.Text(w)
	for _, one := range p.Candidates {
		if seconds := one.Codecs[0].Epoch.Predict; seconds > 0 {
			fmt.Fprintf(w, "%s: computing has %.4f s of predictions (--predict)\n", one.Method, seconds)
		}
	}
	fmt.Fprintln(w)
}

// name marks a partitioner with existing shards.
func (c *Candidate) name() string {
	if c.Made {
		return c.Method + " (made)"
	}
	return c.Method
}

// pairs returns the cells with the bytes of pairs, none for tasks other than link prediction.
func (c *Candidate) pairs() string {
	if c.Pairs == nil {
		return ""
	}
	return fmt.Sprintf(", %s MB of pairs", megabytes(c.Pairs.Sent))
}
