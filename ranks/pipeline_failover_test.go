package ranks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/world"
)

// A stage whose rank is lost in the middle of a step continues on its shadow: the model and the losses are
// those of a run without a loss, to the bit, and forward passes of the step are not repeated.
func TestStagesContinueOnShadows(t *testing.T) {
	data := generatedSmall(t, false)
	networks, seed := deepNetworks(), hosttest.Turn(t, 2)
	for k, run := range []struct {
		network, redundancy, schedule string
		stages, pipelines             int
	}{
		{"sage add layer", "eflb", "1f1b", 3, 2},
		{"gat initial cat", "eflb", "gpipe", 4, 1},
		{"gcnii", "efeb", "1f1b", 4, 1},
		{"gcn max initial", "efeb", "gpipe", 2, 2},
		{"gin max add", "lflb", "1f1b", 3, 1},
		{"gcn add", "off", "1f1b", 3, 1},
	} {
		if !hosttest.Sampled(2, k, seed) {
			continue
		}
		c := inStages(t, networks[run.network])
		c.Redundancy, c.Schedule = run.redundancy, run.schedule
		want := pipelineRun(t, c, run.stages, run.pipelines, data)
		for victim, moments := range map[int][]string{1: {"AV", "∇AV"}, run.stages - 1: {"∇AV"}} {
			for i, moment := range moments {
				if (victim+i+k/2)%2 > 0 && run.stages > 2 && !hosttest.Big() {
					continue
				}
				t.Run(fmt.Sprintf("%+v, stage %d in %s", run, victim, moment), func(t *testing.T) {
					strikes(t, fmt.Sprintf("%d:%s:2:end", victim, moment))
					c.Pipeline, c.Out = fmt.Sprintf("%d,%d", run.stages, run.pipelines), t.TempDir()
					parts := run.stages * run.pipelines
					got := trainThrough(t, c, world.View{Parts: parts, Ranks: parts, Stages: run.stages}, data)
					if !bytes.Equal(got.model, want.model) {
						t.Errorf("another model, losses %v, want %v", got.losses(), want.losses())
					}
					sameLosses(t, "after a loss", got.losses(), want.losses(), 0)
					log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
					if err != nil || len(got.views(t, c.Out)) != 1 {
						t.Fatal(err, got.views(t, c.Out))
					}
					if resumed := strings.Contains(string(log), "pipeline resumed_epoch=2"); resumed != (run.redundancy != "off") {
						t.Errorf("resumed in the middle of a step: %t", resumed)
					}
				})
			}
		}
	}
}
