package importers

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"siafu/graph"
)

// drawPerClass samples a split with the sizes of Shchur et al. (2018, arXiv:1811.05868, section
// 3): train and val vertices per class, and the remaining labelled vertices for the test. If a
// class is too small, the training set is filled first.
func drawPerClass(labels []int32, train, val int, seed uint64) []uint8 {
	split := make([]uint8, len(labels))
	taken := map[int32]int{}
	for _, v := range shuffled(labels, seed) {
		l := labels[v]
		switch {
		case taken[l] < train:
			split[v] = graph.SplitTrain
		case taken[l] < train+val:
			split[v] = graph.SplitVal
		default:
			split[v] = graph.SplitTest
		}
		taken[l]++
	}
	return split
}

// percentages are the sizes of training and validation set in percent; the rest is for the test.
type percentages struct{ train, val float64 }

// usual are the default percentages of a split.
var usual = percentages{60, 20}

// splitAt returns the set of the vertex at an index of count shuffled vertices.
func (p percentages) splitAt(index, count int) uint8 {
	switch i, n := 100*float64(index), float64(count); {
	case i < p.train*n:
		return graph.SplitTrain
	case i < (p.train+p.val)*n:
		return graph.SplitVal
	}
	return graph.SplitTest
}

func (p percentages) test() float64 { return 100 - p.train - p.val }

func (p percentages) String() string {
	return fmt.Sprintf("train=%g%% val=%g%% test=%g%%", p.train, p.val, p.test())
}

func (p percentages) inWords() string {
	return fmt.Sprintf("%g %% train, %g %% val, %g %% test", p.train, p.val, p.test())
}

// percentages returns the percentages of --split-sizes, or else the given ones.
func (o *Options) percentages(otherwise percentages) percentages {
	if o.SplitSizes == "" {
		return otherwise
	}
	p, ok := graph.ParsePercentages(o.SplitSizes)
	if !ok {
		input{"import", o.Src}.refuse("give three percentages above 0 that add up to 100, such as 60/20/20",
			"--split-sizes=%s", o.SplitSizes)
	}
	return percentages{p[0], p[1]}
}

func (o *Options) asksForDraw() bool { return o.Stratify || o.SplitSizes != "" }

// draw samples a split of the labelled vertices, with the percentages of --split-sizes or else
// the given ones. With --stratify it samples within each class.
func (o *Options) draw(labels []int32, otherwise percentages) []uint8 {
	p := o.percentages(otherwise)
	if o.drawn != nil {
		*o.drawn = true
	}
	within := ""
	if o.Stratify {
		within = " within each class"
	}
	o.Log("split=random %s seed=%d%s", p, o.Seed, within)
	split, few := drawPercent(labels, p, o.Stratify, o.Seed)
	if few > 0 {
		o.Log("warning: %d classes have too few labelled vertices for all three sets", few)
	}
	return split
}

// checkDrawn refuses flags of a random split if the split is not random or there are no classes.
func (o *Options) checkDrawn(at input, c *graph.Content) {
	if o.asksForDraw() && !*o.drawn {
		at.refuse("leave them out", "--stratify and --split-sizes apply to a random split, but the source has its own split")
	}
	if o.Stratify && c.Targets != nil {
		at.refuse("leave --stratify out", "--stratify samples within classes, but the labels are for %s", c.Task)
	}
}

// drawPercent samples a split with the given percentages of the labelled vertices, or of those of
// each class. few is the number of classes that are then not in all three sets.
func drawPercent(labels []int32, p percentages, stratify bool, seed uint64) (split []uint8, few int) {
	split = make([]uint8, len(labels))
	order := shuffled(labels, seed)
	if !stratify {
		for i, v := range order {
			split[v] = p.splitAt(i, len(order))
		}
		return split, 0
	}
	type counts struct {
		size, sampled int
		bySet         [4]int // by set; 0 is unused, because every vertex gets a set
	}
	classes := map[int32]*counts{}
	for _, v := range order {
		if classes[labels[v]] == nil {
			classes[labels[v]] = &counts{}
		}
		classes[labels[v]].size++
	}
	for _, v := range order {
		c := classes[labels[v]]
		split[v] = p.splitAt(c.sampled, c.size)
		c.sampled++
		c.bySet[split[v]]++
	}
	for _, c := range classes {
		if slices.Min(c.bySet[graph.SplitTrain:]) == 0 {
			few++
		}
	}
	return split, few
}

// shuffled returns the labelled vertices in an order that depends on the seed only.
func shuffled(labels []int32, seed uint64) []int {
	order := labelled(labels)
	r := rand.New(rand.NewPCG(seed, 0x73706c6974)) // "split"
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

func labelled(labels []int32) (list []int) {
	for v, l := range labels {
		if l != graph.Unlabelled {
			list = append(list, v)
		}
	}
	return list
}
