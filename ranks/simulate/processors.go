package simulate

// processors are what all ranks share, as those of one process do. A worker keeps its
// processor while it has something to run; then whoever has waited longest gets it.
type processors struct {
	*clock
	shared bool // else there is one for each worker
	free   int
	queue  []func()
}

// run does work, as soon as there is a processor, and then something.
func (p *processors) run(seconds float64, then func()) {
	if !p.shared {
		p.at(p.now+seconds, then)
		return
	}
	p.queue = append(p.queue, func() {
		p.at(p.now+seconds, func() {
			p.free++
			rest := p.queue // of others, who have waited while this worker had work
			p.queue = nil
			then()
			p.queue = append(p.queue, rest...)
			p.give()
		})
	})
	p.give()
}

// give gives free processors to those who wait for one.
func (p *processors) give() {
	for p.free > 0 && len(p.queue) > 0 {
		start := p.queue[0]
		p.queue = p.queue[1:]
		p.free--
		start()
	}
}
