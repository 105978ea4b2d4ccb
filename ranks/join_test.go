package ranks

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/parts"
)

// busyAdmission answers after another goroutine, which holds the mutex of package parts, has stored a state.
type busyAdmission struct {
	parts.Admission
	run *viewSequence
}

func (a busyAdmission) Requested() bool {
	a.run.Unpack(membership.State{}, nil)
	return true
}

// A member asks whether a process waits to join, while a state of another rank arrives. Neither waits for
// ever.
func TestRequestsWhileStatesArrive(t *testing.T) {
	c := replaceableRun(quick(t), "", os.Stderr)
	c.admission = busyAdmission{run: c}
	requested := make(chan bool, 1)
	go func() { requested <- (&member{views: c}).ViewRequested() }()
	select {
	case got := <-requested:
		if !got {
			t.Error("no view is requested")
		}
	case <-time.After(hosttest.Patience):
		t.Fatal("the mutexes of the run and of its world are locked in both orders")
	}
}

// A process joins only with the executable, the dataset and the kernels of the ranks.
func TestCredentials(t *testing.T) {
	data := generated(t, false)
	c := replaceableRun(quick(t), data, os.Stderr)
	zones := filepath.Join(t.TempDir(), "zones")
	if err := os.WriteFile(zones, []byte("node1 a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.cfg.Zones = zones
	for says, change := range map[string]func(*credentials){
		"":                    func(o *credentials) {},
		"executable differs":  func(o *credentials) { o.Build = "0" },
		"dataset in " + data:  func(o *credentials) { o.Fingerprint = "0" },
		`host "node2" has no`: func(o *credentials) { o.Host = "node2" },
	} {
		other, err := credentialsOf(data, "node1")
		if err != nil {
			t.Fatal(err)
		}
		change(&other)
		request, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.vet(request); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v", says, err)
		}
	}
	if c.vet([]byte("{")) == nil {
		t.Error("a request that is no JSON is accepted")
	}
}

// A host without the shards of the run, or with those of another partitioning, cannot join.
func TestJoinChecksShards(t *testing.T) {
	data := generated(t, false)
	if _, err := partition.Run(data, partition.Options{Parts: 2, Method: "hash", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	inv := invitation{Data: data, Shards: shard.Folder(data, 2), Parts: 2}
	if err := inv.checkShards("here"); err == nil || !strings.Contains(err.Error(), "another partitioning") {
		t.Errorf("%v", err)
	}
	s, err := shard.Open(data, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	inv.Assignment = strings.Clone(s.Assignment)
	s.Close()
	if err := inv.checkShards("here"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(inv.Shards, "1.part")); err != nil {
		t.Fatal(err)
	}
	if err := inv.checkShards("here"); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "same path on all hosts") {
		t.Errorf("%v", err)
	}
}

// A process that joins has the configuration of the ranks.
func TestInvitationRoundTrip(t *testing.T) {
	c := config.Defaults()
	c.Out, c.DrawnSteps, c.Chosen = "run", 3, []config.Choice{{Flag: "lr", Value: "0.1", Why: "size"}}
	text, err := json.Marshal(invitation{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	var got invitation
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Config, c) {
		t.Errorf("got %+v, want %+v", got.Config, c)
	}
}

// Join fails with a reason if no process can join the run.
func TestJoinWithoutInvitation(t *testing.T) {
	c := quick(t)
	c.Epochs = 1
	train(t, c, generated(t, false))
	if err := os.Remove(filepath.Join(c.Out, "summary.json")); err != nil { // as if it were active
		t.Fatal(err)
	}
	err := Join(t.Context(), JoinOptions{Run: c.Out}, IO{Out: io.Discard, Err: io.Discard})
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "no process can join") {
		t.Errorf("%v", err)
	}
}
