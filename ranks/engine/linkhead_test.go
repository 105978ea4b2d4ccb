package engine

import (
	"testing"

	"siafu/kernels/model"
	"siafu/ranks/config"
)

// A forecast counts each float of a rank's perceptrons and their gradients. TestHeadFloats of
// package model counts the floats of one perceptron.
func TestHeadFloats(t *testing.T) {
	for _, layers := range []int{0, 1, 2, 4} {
		net := model.Spec{Kind: "gcn", Dims: []int{9, 8, 5}, Design: model.Design{ScoreLayers: layers, ScoreHidden: 7}}
		e := &Engine{Rank: Rank{Problem: Problem{Network: net,
			Config: config.Config{ComputeOptions: config.ComputeOptions{Kernel: "go"}}}}}
		scorer, err := e.newScorer()
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		if h, ok := scorer.(*linkHead); ok {
			got = int64(len(h.grad))
			for k := range h.lanes {
				got += int64(len(h.lanes[k].grad)) + net.HeadFloats(pairBlock)
			}
		}
		if want := HeadFloats(net); got != want {
			t.Errorf("%d layers take %d floats, estimated are %d", layers, got, want)
		}
	}
}
