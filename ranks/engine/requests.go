package engine

import (
	"siafu/internal/signals"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// requests are what ranks request for the end of an epoch: 1 for each request of a rank, or their sums over
// ranks.
type requests [requestKinds]float64

const (
	requestCheckpoint = iota
	requestStop
	requestView // another view
	skipState   // rank 0 stores no state after the epoch
	requestKinds
)

// ownRequests returns this rank's requests in an epoch, which may already be trained.
func (t *trainer) ownRequests(epoch int, trained bool) (own requests) {
	switch max(t.saver.Pending(epoch, trained), t.servers.Asked()) {
	case signals.Checkpoint:
		own[requestCheckpoint] = 1
	case signals.Stop:
		own[requestStop] = 1
	}
	if t.replaceable() {
		if t.views.ViewRequested() {
			own[requestView] = 1
		}
		if t.comm.Rank() == 0 && !t.storage.due(t.views.Share()) {
			own[skipState] = 1
		}
	}
	return own
}

// accept stores the requests of all ranks, which are executed before the next epoch.
func (c *control) accept(all requests) {
	switch {
	case all[requestStop] > 0:
		c.pendingRequest = signals.Stop
	case all[requestCheckpoint] > 0:
		c.pendingRequest = max(c.pendingRequest, signals.Checkpoint)
	}
	c.viewRequested, c.storage.skips = all[requestView] > 0, all[skipState] > 0
}

// sumResults sums findings and requests over all ranks, in one message. Collective over the graph ranks.
func (t *trainer) sumResults(epoch int, own findings, asked requests) (findings, requests, error) {
	copy(t.sums, own[:])
	copy(t.sums[findingsSize:], asked[:])
	err := t.timed(schedule.Loss, epoch, func() error { return world.SumFloat64s(t.comm, t.sums) })
	return findings(t.sums), requests(t.sums[findingsSize:]), err
}
