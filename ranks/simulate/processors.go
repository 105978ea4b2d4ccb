package simulate

// processors are shared by all ranks of a process. A worker keeps its processor while it has
// work. The next processor goes to the worker that has waited longest.
type processors struct {
	*clock
	shared bool // otherwise each worker has its own
	free   int
	queue  []func()
}

// run occupies a processor for some seconds, once one is free, and then calls then.
func (p *processors) run(seconds float64, then func()) {
	if !p.shared {
		p.at(p.now+seconds, then)
		return
	}
	p.queue = append(p.queue, func() {
		p.at(p.now+seconds, func() {
			p.free++
			rest := p.queue // workers that have waited meanwhile
			p.queue = nil
			then()
			p.queue = append(p.queue, rest...)
			p.assign()
		})
	})
	p.assign()
}

// assign assigns free processors to waiting workers.
func (p *processors) assign() {
	for p.free > 0 && len(p.queue) > 0 {
		start := p.queue[0]
		p.queue = p.queue[1:]
		p.free--
		start()
	}
}
