package ptx

// flowGraph is code as basic blocks.
type flowGraph struct {
	code   []inst
	labels []int32
	first  []int32 // of the instructions of each block
	block  []int32 // of an instruction
	next   [][2]int32
	// Tarjan's algorithm: the number of a block, its low link, the search that it belongs to,
	// and whether it is on the stack.
	number, low, inside []int32
	open                []bool
	searches            int32
	stack               []int32
}

// maxLoops is the maximum depth of nested loops that are ordered.
const maxLoops = 64

// arrange orders basic blocks so that the blocks of a loop are contiguous, before the blocks
// after the loop, and otherwise a block follows all its predecessors. (Bourdoncle, Efficient
// chaotic iteration strategies with widenings, 1993: a weak topological order.) Unreachable
// blocks are omitted.
//
// Targets of code are labels, and those of the result are instructions.
func arrange(code []inst, labels []int32) []inst {
	g := cut(code, labels)
	var order []int32
	g.sort(g.reachable(), 0, &order)
	return g.lay(order)
}

// cut finds the blocks of code.
func cut(code []inst, labels []int32) *flowGraph {
	leader := make([]bool, len(code)+1)
	leader[0] = true
	for _, at := range labels {
		if at >= 0 {
			leader[at] = true
		}
	}
	for i := range code {
		leader[i+1] = leader[i+1] || code[i].ends()
	}
	g := &flowGraph{code: code, labels: labels, block: make([]int32, len(code))}
	for i := range code {
		if leader[i] {
			g.first = append(g.first, int32(i))
		}
		g.block[i] = int32(len(g.first) - 1)
	}
	n := len(g.first)
	g.number, g.low, g.inside, g.open = make([]int32, n), make([]int32, n), make([]int32, n), make([]bool, n)
	for b := range g.first {
		g.next = append(g.next, g.successors(b))
	}
	return g
}

// ends reports whether in is the last instruction of its block.
func (in *inst) ends() bool {
	return in.flow == jump || in.flow == branch || (in.flow == leave || in.flow == trapped) && in.guard == 0
}

// successors returns the successors of b: the next block and the target of its branch; -1 for
// none.
func (g *flowGraph) successors(b int) (next [2]int32) {
	next = [2]int32{-1, -1}
	last := &g.code[g.end(b)-1]
	if last.flow == jump || last.flow == branch {
		next[1] = g.block[g.labels[last.target]]
	}
	if (last.flow == branch || !last.ends()) && b+1 < len(g.first) {
		next[0] = int32(b + 1)
	}
	return next
}

// end returns the end of b's instructions.
func (g *flowGraph) end(b int) int {
	if b+1 < len(g.first) {
		return int(g.first[b+1])
	}
	return len(g.code)
}

// reachable returns the blocks reachable from the first one.
func (g *flowGraph) reachable() []int32 {
	seen := make([]bool, len(g.first))
	list := []int32{0}
	seen[0] = true
	for i := 0; i < len(list); i++ {
		for _, n := range g.next[list[i]] {
			if n >= 0 && !seen[n] {
				seen[n] = true
				list = append(list, n)
			}
		}
	}
	return list
}

// sort appends blocks to order, a loop's blocks after its entry block.
func (g *flowGraph) sort(blocks []int32, depth int, order *[]int32) {
	g.searches++
	for _, b := range blocks {
		g.inside[b], g.number[b] = g.searches, 0
	}
	var sets [][]int32
	count := int32(0)
	for _, b := range blocks {
		if g.number[b] == 0 {
			g.search(b, &count, &sets)
		}
	}
	for i := len(sets) - 1; i >= 0; i-- {
		*order = append(*order, sets[i][0])
		switch rest := sets[i][1:]; {
		case len(rest) == 0:
		case depth >= maxLoops:
			*order = append(*order, rest...)
		default:
			g.sort(rest, depth+1, order)
		}
	}
}

// search appends the strongly connected components reachable from b, each after its
// successors, and each with its first found block in front.
func (g *flowGraph) search(b int32, count *int32, sets *[][]int32) {
	*count++
	g.number[b], g.low[b], g.open[b] = *count, *count, true
	at := len(g.stack)
	g.stack = append(g.stack, b)
	for _, n := range g.next[b] {
		switch {
		case n < 0 || g.inside[n] != g.inside[b]:
		case g.number[n] == 0:
			g.search(n, count, sets)
			g.low[b] = min(g.low[b], g.low[n])
		case g.open[n]:
			g.low[b] = min(g.low[b], g.number[n])
		}
	}
	if g.low[b] != g.number[b] {
		return
	}
	set := append([]int32(nil), g.stack[at:]...)
	for _, n := range set {
		g.open[n] = false
	}
	g.stack = g.stack[:at]
	*sets = append(*sets, set)
}

// lay emits the blocks in order. Each ends in a jump, a branch or an exit.
func (g *flowGraph) lay(order []int32) []inst {
	var code []inst
	place := make([]int32, len(g.first))
	for _, b := range order {
		place[b] = int32(len(code))
		code = append(code, g.code[g.first[b]:g.end(int(b))]...)
		last := &code[len(code)-1]
		switch {
		case last.flow == jump || last.flow == branch:
			last.target, last.next = g.next[b][1], g.next[b][0]
		case !last.ends():
			code = append(code, inst{flow: jump, target: g.next[b][0], line: last.line})
		}
		code[len(code)-1].steps = int32(len(code)) - place[b]
	}
	for i := range code {
		switch in := &code[i]; in.flow {
		case branch:
			in.next = place[in.next]
			fallthrough
		case jump:
			in.target = place[in.target]
		}
	}
	return code
}
