package plan

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/screen"
	"siafu/internal/table"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// Plan is the estimate of a run.
type Plan struct {
	Dataset      string          `json:"dataset"`
	Vertices     int64           `json:"vertices"`
	Edges        int64           `json:"edges"`
	Model        string          `json:"model"`
	Dims         []int           `json:"dims"`
	Weights      int             `json:"weights"`
	GraphRanks   int             `json:"graph_ranks"`
	Servers      int             `json:"servers"`
	Parts        int             `json:"parts"` // parts of the graph ranks
	RanksPerHost int             `json:"ranks_per_host"`
	Bandwidth    float64         `json:"bandwidth_bytes_per_second"`
	Latency      float64         `json:"latency_seconds"`
	Memory       int64           `json:"memory_bytes"` // available to a rank
	Mode         string          `json:"mode"`
	Recompute    bool            `json:"recompute"`
	Threads      int             `json:"threads"`                    // threads of the measurements
	Timed        bool            `json:"timed"`                      // epochs are estimated; otherwise their seconds are 0
	Epochs       int             `json:"epochs"`                     // of the run
	LambdaMemory int             `json:"lambda_memory_mb,omitempty"` // with --tensor lambda
	Tariff       string          `json:"tariff,omitempty"`           // with --tensor lambda
	Candidates   []*Candidate    `json:"candidates"`
	Best         int             `json:"best"` // index of the fitting candidate with the shortest epoch
	Server       forecast.Memory `json:"server_memory,omitempty"`
	Stages       []Stage         `json:"stages,omitempty"` // of a pipeline
	Disk         *Disk           `json:"disk,omitempty"`   // with --memory scratch=DIR
	Partitioning forecast.Memory `json:"partitioning_memory"`
	Import       forecast.Memory `json:"import_memory"`
	Verdict      []string        `json:"verdict"`

	// Recommended configurations, nil if none fits or times are not estimated. Host is the
	// instance whose price is assumed for each host.
	Fastest  *Advice `json:"fastest,omitempty"`
	Cheapest *Advice `json:"cheapest,omitempty"`
	Host     string  `json:"host,omitempty"`

	all bool // print tables
}

// Run makes a plan and prints it to w. If nothing fits, it prints the plan and returns a fault of
// kind Config.
func Run(o Options, w io.Writer) error {
	if l, launched := world.Launched(); launched {
		return fault.New(fault.Usage, op, "", "it runs in one process and cannot run under %s", l.Name).Then("set --ranks to %d", l.Size)
	}
	p, err := New(o)
	if err != nil {
		return err
	}
	if o.JSON {
		err = table.JSON(w, p)
	} else {
		err = p.Print(w)
	}
	if err != nil {
		return err
	}
	return p.fits()
}

// New makes a plan.
func New(o Options) (*Plan, error) {
	q, err := o.parse()
	if err != nil {
		return nil, err
	}
	return q.estimate()
}

func (q *request) estimate() (*Plan, error) {
	ds, err := q.open()
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	defer screen.Repeat(q.Progress, q.steps.line)()
	if err := ds.Meta.Trains("plan", q.Data); err != nil {
		return nil, err
	}
	var source string
	if q.disk, source, err = q.diskRate(); err != nil {
		return nil, err
	}
	q.ordered = q.orders(ds)
	if q.sized, err = q.larger(); err != nil {
		return nil, err
	}
	q.codedBits = sync.OnceValue(func() float64 { return q.sampleCodedBits(ds) })
	p := q.plan(q.sized)
	p.all = q.All
	for k, method := range q.methods {
		if k > 0 && q.steps.over() {
			q.steps.skip("--partitioner " + strings.Join(q.methods[k:], ","))
			break
		}
		c, err := q.candidate(ds, method)
		if err != nil {
			return nil, err
		}
		p.Candidates = append(p.Candidates, c)
	}
	if err := q.time(ds, p); err != nil {
		return nil, err
	}
	if q.Config.Survive {
		p.spare()
	}
	p.files(q, source)
	p.stages()
	if text := q.steps.skippedText(q.MaxTime); text != "" {
		p.Verdict = append(p.Verdict, text)
	}
	return p, nil
}

// plan makes the parts that are independent of the partitioner.
func (q *request) plan(m *graph.Meta) *Plan {
	p := &Plan{
		Dataset: m.Name, Vertices: m.Vertices, Edges: m.Edges, Model: q.Config.Model,
		GraphRanks: q.view.Ranks, Servers: q.view.Servers, Parts: q.view.Parts, RanksPerHost: q.link.RanksPerHost,
		Bandwidth: q.link.Bandwidth, Latency: q.link.Latency, Memory: q.memory, Mode: q.Config.Mode, Recompute: q.Config.Recompute,
		Import:       forecast.Import(m),
		Partitioning: forecast.Partitioning(m, q.Config.Partitions(q.view.Parts), q.ordered), Epochs: q.Config.Epochs,
	}
	if q.Config.Tensor == config.TensorLambda {
		p.LambdaMemory, p.Tariff = q.Config.LambdaMemory, q.Config.Tariff().Name
	}
	return p
}

// orders reports whether partitioning orders vertices.
func (q *request) orders(ds *graph.Dataset) bool {
	switch m := q.made("", 1); {
	case q.Config.VertexOrder == "natural":
		return false
	case !ds.Verified(): // with shards of one part
		return m.Report.Order.Name != "natural"
	case q.Config.VertexOrder == "", q.Config.VertexOrder == "auto":
		return order.Promising(ds.In)
	}
	return true
}

// time measures this host and estimates every candidate's epoch, if the measurements fit into
// memory.
func (q *request) time(ds *graph.Dataset, p *Plan) error {
	q.steps.begin("measuring the rates of this host")
	if q.Config.Tensor == config.TensorCUDA {
		p.onGPUs()
		return nil
	}
	if q.Config.Batching().Draws() {
		p.Verdict = append(p.Verdict, fmt.Sprintf("Epochs are not timed: the time of a mini-batch epoch and the rows that ranks fetch "+
			"depend on what --batch=%s samples. No other ghost rows are sent.", q.Config.Batch))
		return nil
	}
	c, err := q.calibration(ds)
	if err != nil {
		return err
	}
	defer c.Team.Close()
	p.Threads = c.Team.Workers()
	if need := c.peakMemory(p); need > c.Memory {
		p.Verdict = append(p.Verdict,
			fmt.Sprintf("Epochs are not timed: the measurement takes %s MB, but half of this host's free memory is %s MB.",
				megabytes(need), megabytes(c.Memory)))
		return nil
	}
	if err := c.epochs(q, p); err != nil {
		p.Verdict = append(p.Verdict, fmt.Sprintf("Epochs are not timed: %v", err))
	}
	p.conclude(q)
	if q.ordered && !c.ordered {
		p.Verdict = append(p.Verdict,
			fmt.Sprintf("Gathers are timed in the dataset's own order of vertices; training finds one in which they are often faster, up "+
				"to 2.6 times on graphs with communities. Once that is there (siafu partition --parts 1 %s) a "+
				"plan times them in it.", ds.Dir))
	}
	return q.advise(ds, p, c)
}

// onGPUs describes the memory of a run on GPUs.
func (p *Plan) onGPUs() {
	most := int64(0)
	for _, c := range p.Candidates {
		most = max(most, c.Memory.Of(forecast.Device))
	}
	p.Verdict = append(p.Verdict, fmt.Sprintf("A rank takes up to %s MB of a GPU; ranks that share one take the sum. Epochs are not "+
		"timed: nothing has been measured on GPUs.", megabytes(most)))
}

// epochs sets every candidate's epoch. It fails if the system has no memory for a measurement.
func (c *calibration) epochs(q *request, p *Plan) (err error) {
	defer mapped.Catch(&err)
	link := q.link
	if c.copies == 0 {
		c.copies = c.Copies()
	}
	link.Copy = c.copies
	for _, one := range p.Candidates {
		for i := range one.Codecs {
			coded := &one.Codecs[i]
			coded.Epoch = coded.forecast.Epoch(one.report.Ranks, c.ratesOf(q, coded), link)
			for k := range coded.Choices {
				other := &coded.Choices[k]
				other.Epoch = other.forecast.Epoch(one.report.Ranks, c.ratesOf(q, other), link)
			}
			coded.chooseGhosts(p.Mode)
		}
		one.describe(q, one.Codecs[0])
	}
	p.Timed = true
	return nil
}

// ratesOf returns the rates of an estimate's network and codec, measured at the first call.
func (c *calibration) ratesOf(q *request, coded *Coded) forecast.Rates {
	f := coded.forecast
	r, ok := c.known[coded.network]
	if !ok {
		r = c.Rates(f)
		c.known[coded.network] = r
	}
	name := f.Codecs[0].Name()
	if _, ok := c.coding[name]; !ok {
		c.coding[name] = c.Codec(f.Codecs[0], f)
	}
	r.Codec, r.Disk = c.coding[name], q.disk
	return r
}

// network sets the plan's description of the run's network.
func (p *Plan) network(f *forecast.Forecast) {
	p.Dims, p.Weights = f.Net.Dims, f.Net.NumWeights()
	if f.Servers > 0 {
		p.Server = f.ServerRank((f.Graph + f.Servers - 1) / f.Servers)
	}
}

// fits returns a fault if nothing fits into memory.
func (p *Plan) fits() error {
	least, need := p.Candidates[0], p.Candidates[0].Codecs[0].Peak
	for _, one := range p.Candidates {
		for _, c := range one.Codecs {
			if c.Fits {
				return nil
			}
			if c.Peak < need {
				least, need = one, c.Peak
			}
		}
	}
	return fault.New(fault.Config, op, "", "rank %d needs %s MB, but %s MB are available, even with --partitioner %s",
		least.Largest, megabytes(need), megabytes(p.Memory), least.Method).
		Then("%s%s", p.ranksNeeded(need, least.fixed), p.memoryRemedy(least))
}

// ranksNeeded names the sufficient number of ranks, if there is one. Ranks share all memory except the
// fixed part.
func (p *Plan) ranksNeeded(need, fixed int64) string {
	room, shared := p.Memory-forecast.Program-fixed, need-forecast.Program-fixed
	switch {
	case p.Memory <= forecast.Program:
		return fmt.Sprintf("the program alone takes %s MB: give it more memory", megabytes(forecast.Program))
	case room <= 0:
		return fmt.Sprintf("the weights and arrays of their size take %s MB on every rank, for any number of ranks: give it more memory",
			megabytes(fixed))
	}
	return fmt.Sprintf("use about %.0f graph ranks with as much memory each",
		math.Floor(float64(shared)/float64(room)*float64(p.GraphRanks))+1)
}

// memoryRemedy names flags that reduce memory.
func (p *Plan) memoryRemedy(c *Candidate) string {
	if less := c.Kept - c.Recomputed; !p.Recompute && less > c.Kept/10 {
		return fmt.Sprintf(", or --recompute (%s MB less)", megabytes(less))
	}
	for _, t := range c.Memory {
		if t.Name == forecast.Kept && t.Kind != forecast.Disk {
			return fmt.Sprintf(", or --cache-input off (%s MB less), or --precision features=bf16", megabytes(t.Bytes))
		}
	}
	return ", or a narrower --hidden than those of " + p.shape()
}

// shape returns the widths of the network, without the middle of a deep one.
func (p *Plan) shape() string {
	if n := len(p.Dims); n > 12 {
		return strings.TrimSuffix(fmt.Sprint(p.Dims[:4]), "]") + " … " + strings.TrimPrefix(fmt.Sprint(p.Dims[n-2:]), "[")
	}
	return fmt.Sprint(p.Dims)
}
