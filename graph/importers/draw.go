package importers

import (
	"math/rand/v2"

	"siafu/graph"
)

// drawPerClass draws a split with the sizes of Shchur et al. (2018,
// arXiv:1811.05868, section 3): train and val vertices of each class, the rest
// of the labelled ones for the test. A smaller class gives what it has, for
// training first.
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

// drawPercent draws a split with the given percentages of the labelled
// vertices for training and validation, the rest for the test.
func drawPercent(labels []int32, train, val int, seed uint64) []uint8 {
	split := make([]uint8, len(labels))
	order := shuffled(labels, seed)
	for i, v := range order {
		switch at := int64(i) * 100; {
		case at < int64(train)*int64(len(order)):
			split[v] = graph.SplitTrain
		case at < int64(train+val)*int64(len(order)):
			split[v] = graph.SplitVal
		default:
			split[v] = graph.SplitTest
		}
	}
	return split
}

// shuffled is the labelled vertices in an order that depends on the seed only.
func shuffled(labels []int32, seed uint64) []int {
	var order []int
	for v, l := range labels {
		if l != graph.Unlabelled {
			order = append(order, v)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0x73706c6974)) // "split"
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
