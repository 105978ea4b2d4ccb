package runfolder

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// eventsFile contains "tfevents" because TensorBoard searches for such names.
const eventsFile = "events.out.tfevents.siafu"

// OpenEvents creates the event file of TensorBoard with the epochs so far. AppendEpoch then
// appends to it. Call OpenEvents after Begin or Continue.
func (f *Folder) OpenEvents(epochs Lines) error {
	path := filepath.Join(f.dir, eventsFile)
	file, err := durable.OpenInPlace(op, path, os.O_TRUNC)
	if err != nil {
		return err
	}
	f.eventsFile = file
	if f.events, err = newEventWriter(file); err != nil {
		return fault.System(op, path, err)
	}
	var failed error
	err = epochs.Each(func(e *Epoch) { failed = cmp.Or(failed, f.appendEvent(e)) })
	return cmp.Or(failed, err)
}

// appendEvent adds an epoch to the event file, if there is one.
func (f *Folder) appendEvent(e *Epoch) error {
	if f.events == nil {
		return nil
	}
	at := e.Time
	if at.IsZero() { // a line from an older version
		at = time.Unix(0, 0)
	}
	if err := f.events.Write(at, int64(e.Epoch), scalars(e)); err != nil {
		return fault.System(op, filepath.Join(f.dir, eventsFile), err)
	}
	return nil
}

// scalars returns the available numbers of an epoch.
func scalars(e *Epoch) []scalar {
	list := []scalar{
		{Name: "loss/train", Value: e.Loss},
		{Name: "seconds/epoch", Value: e.Seconds}, {Name: "seconds/elapsed", Value: e.Elapsed},
		{Name: "seconds/eval", Value: e.EvalSeconds}, {Name: "seconds/wait", Value: e.WaitSeconds},
		{Name: "ghosts/bytes_raw", Value: float64(e.GhostBytesRaw)}, {Name: "ghosts/bytes_sent", Value: float64(e.GhostBytesSent)},
	}
	add := func(name string, v *float64) {
		if v != nil {
			list = append(list, scalar{Name: name, Value: *v})
		}
	}
	add("loss/val", e.ValLoss)
	add("accuracy/train", e.TrainAcc)
	add("accuracy/val", e.ValAcc)
	add("accuracy/test", e.TestAcc)
	for name, value := range e.ValMetrics { // at most one
		add(name+"/val", &value)
	}
	if e.DiskBytesRead > 0 || e.FetchWaitSeconds > 0 {
		read := float64(e.DiskBytesRead)
		add("seconds/fetch_wait", &e.FetchWaitSeconds)
		add("disk/bytes_read", &read)
	}
	for _, task := range slices.Sorted(maps.Keys(e.TaskSeconds)) {
		seconds := e.TaskSeconds[task]
		add("task_seconds/"+task, &seconds)
	}
	if s := e.Staleness; s != nil {
		most := s.Most()
		add("staleness/relative", &most)
		add("staleness/gradient_error", &s.GradientError)
	}
	if e.CostUSD > 0 {
		add("cost/usd", &e.CostUSD)
	}
	if e.LambdaInvocations > 0 {
		n := float64(e.LambdaInvocations)
		add("lambda/invocations", &n)
	}
	return list
}
