package simulate

import (
	"fmt"
	"slices"
	"time"

	"siafu/internal/fault"
)

// FailureOptions define the failures of ranks in a run of replayed epochs.
type FailureOptions struct {
	Fail            []string      `help:"Failure of a rank, as RANK@TIME since the start, such as 3@10m. All ranks restart from the last checkpoint."`
	Restart         time.Duration `default:"30s" help:"Time from a failure until the ranks train again."`
	CheckpointEvery int           `default:"10" help:"Epochs between checkpoints; 0: none."`
	RunEpochs       int           `default:"100" help:"Epochs of the run in which ranks fail."`
}

// failures returns the times of failures, ascending, in seconds.
func (o *FailureOptions) failures(ranks int) (at []float64, err error) {
	if len(o.Fail) == 0 {
		return nil, nil
	}
	if o.Restart < 0 || o.CheckpointEvery < 0 || o.RunEpochs < 1 || o.RunEpochs > mostEpochs {
		return nil, fault.New(fault.Usage, op, "", "--restart %v, --checkpoint-every %d, --run-epochs %d", o.Restart,
			o.CheckpointEvery, o.RunEpochs).
			Then("set 1 to %d epochs, and no negative value", mostEpochs)
	}
	for _, text := range o.Fail {
		var rank int
		var moment string
		n, _ := fmt.Sscanf(text, "%d@%s", &rank, &moment)
		d, bad := time.ParseDuration(moment)
		if n != 2 || bad != nil || d < 0 || rank < 0 || rank >= ranks {
			return nil, fault.New(fault.Usage, op, "", "--fail %q", text).
				Then("write RANK@TIME with a graph rank from 0 to %d, such as 0@10m", ranks-1)
		}
		at = append(at, d.Seconds())
	}
	slices.Sort(at)
	return at, nil
}

// interrupted returns the duration of a run with the given seconds per epoch and times of
// failures, and the number of repeated epochs. A checkpoint takes no time.
func (o *FailureOptions) interrupted(epoch float64, fails []float64) (seconds float64, again int) {
	now, done := 0.0, 0
	for _, f := range fails {
		trained := done
		if f > now {
			trained += int((f - now) / epoch)
		}
		if trained >= o.RunEpochs {
			break
		}
		saved := 0
		if o.CheckpointEvery > 0 {
			saved = trained - trained%o.CheckpointEvery
		}
		again += trained - saved
		now, done = f+o.Restart.Seconds(), saved
	}
	return now + float64(o.RunEpochs-done)*epoch, again
}
