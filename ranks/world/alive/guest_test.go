package alive

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/ranks/world"
)

// vet refuses requests other than "good".
func vet(request []byte) error {
	if string(request) != "good" {
		return errors.New("another build")
	}
	return nil
}

// join connects a guest, and returns its contact as the ranks see it.
func join(t *testing.T, list []*Mesh, live ...int) (*Mesh, []byte) {
	t.Helper()
	guest, unreachable, err := Join(list[live[0]].Contacts(live), "elsewhere", []byte("good"), list[live[0]].silent, vet)
	if err != nil || len(unreachable) > 0 {
		t.Fatal(err, unreachable)
	}
	t.Cleanup(guest.Break)
	var contact []byte
	for _, r := range live {
		e := next(t, list[r])
		if !e.Arrived || e.Guest != guest.ID() || e.Host != "elsewhere" {
			t.Fatalf("rank %d: %+v", r, e)
		}
		contact = e.Data
	}
	return guest, contact
}

// A guest exchanges messages before and after it becomes a rank. Later guests connect to it. Its end
// is noticed.
func TestGuest(t *testing.T) {
	list := meshes(t, 2, time.Minute, vet)
	first, contact := join(t, list, 0, 1)
	first.Send(1, wire.Ask, []byte("ask"))
	if e := next(t, list[1]); e.Guest != first.ID() || e.Kind != wire.Ask || string(e.Data) != "ask" {
		t.Fatalf("%+v", e)
	}
	list[0].SendGuest(first.ID(), wire.Decision, nil)
	if e := next(t, first); e.From != 0 || e.Kind != wire.Decision || e.Guest != 0 {
		t.Fatalf("%+v", e)
	}
	second, later := join(t, list, 0, 1)
	for _, m := range []*Mesh{list[0], list[1], first, second} {
		if !m.Admit(first.ID(), contact) {
			t.Fatalf("rank %d does not admit the guest", m.rank)
		}
	}
	if e := next(t, first); !e.Arrived || e.Guest != second.ID() {
		t.Fatalf("%+v", e)
	}
	for _, m := range []*Mesh{list[0], list[1], first, second} {
		if !m.Admit(second.ID(), later) {
			t.Fatalf("rank %d does not admit the guest", m.rank)
		}
	}
	second.Send(2, wire.Copy, nil)
	if e := next(t, first); e.Guest != second.ID() || e.Kind != wire.Copy {
		t.Fatalf("%+v", e)
	}
	if first.Stream(3) == nil || second.Stream(2) == nil || list[0].Stream(2) == nil || list[0].Stream(1) != nil {
		t.Error("streams connect others than pairs with a joined rank")
	}
	first.Break()
	for _, m := range []*Mesh{list[0], list[1], second} {
		if e := next(t, m); !e.Lost || !e.Certain || e.Guest != first.ID() && e.From != 2 {
			t.Errorf("%+v", e)
		}
	}
}

// A rank refuses a guest with a reason that both sides see, and one without the token silently.
func TestRefusal(t *testing.T) {
	list := meshes(t, 1, 5*time.Second, vet)
	c := list[0].Contacts([]int{0})
	_, _, err := Join(c, "elsewhere", []byte("bad"), 5*time.Second, vet)
	if refused := (*Refusal)(nil); !errors.As(err, &refused) || refused.Reason != "another build" {
		t.Errorf("%v", err)
	}
	if e := next(t, list[0]); e.Refused == nil || e.Host != "elsewhere" {
		t.Errorf("%+v", e)
	}
	c.Token = make([]byte, len(token{}))
	if _, _, err := Join(c, "elsewhere", []byte("good"), 5*time.Second, vet); err == nil {
		t.Error("no token is required")
	}
	list[0].Break()
	c = list[0].Contacts([]int{0})
	if _, _, err := Join(c, "elsewhere", []byte("good"), 5*time.Second, vet); err == nil {
		t.Error("joined a world that has ended")
	}
}

// A guest on another machine does not connect to ranks that listen only on their own: the same address
// on its machine may be that of a stranger, who would get the token.
func TestGuestElsewhere(t *testing.T) {
	list := meshes(t, 1, 5*time.Second, vet)
	c := list[0].Contacts([]int{0})
	c.Ranks[0].Machine = "another"
	_, _, err := Join(c, "elsewhere", []byte("good"), 5*time.Second, vet)
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "--survive listen=CIDR") {
		t.Errorf("%v", err)
	}
}

// Packets arrive in order and blocks in the receiver's buffers, however the two sides interleave.
func TestStream(t *testing.T) {
	list := meshes(t, 1, 5*time.Second, vet)
	guest, contact := join(t, list, 0)
	for _, m := range []*Mesh{guest, list[0]} {
		m.Admit(guest.ID(), contact)
	}
	a, b := guest.Stream(0), list[0].Stream(1)
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 300
	var sent, received []world.Request
	var blocks, buffers [][]byte
	for k := range n {
		blocks = append(blocks, make([]byte, rng.IntN(100<<10)))
		buffers = append(buffers, make([]byte, len(blocks[k])))
		for i := range blocks[k] {
			blocks[k][i] = byte(k + i)
		}
		sent = append(sent, a.Send([]byte{byte(k)}))
	}
	order := rng.Perm(n)
	for k := range n { // one side is ahead of the other for a random time
		sent = append(sent, a.SendBlock(blocks[k], k))
		if at := order[k]; rng.IntN(2) == 0 {
			received = append(received, b.ReceiveBlock(buffers[at], at))
			order[k] = -1
		}
	}
	for k := 0; k < n; {
		if p, ok := b.Receive(); ok {
			if p[0] != byte(k) {
				t.Fatalf("packet %d: %d", k, p[0])
			}
			k++
		}
	}
	for _, at := range order {
		if at >= 0 {
			received = append(received, b.ReceiveBlock(buffers[at], at))
		}
	}
	for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(time.Millisecond) {
		waits := slices.ContainsFunc(append(sent, received...), func(r world.Request) bool { ended, _ := r.Test(); return !ended })
		if !waits {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("transfers do not end")
		}
	}
	for k := range blocks {
		if !slices.Equal(blocks[k], buffers[k]) {
			t.Errorf("block %d", k)
		}
	}
}

// A receiver that accepts nothing stops the sender, and remains alive. Its packets arrive later.
func TestBackPressure(t *testing.T) {
	list := meshes(t, 1, 2*time.Second, vet)
	guest, contact := join(t, list, 0)
	for _, m := range []*Mesh{guest, list[0]} {
		m.Admit(guest.ID(), contact)
	}
	a, b := guest.Stream(0), list[0].Stream(1)
	const n = 64
	var sent []world.Request
	for range n {
		sent = append(sent, a.Send(make([]byte, 1<<20)))
	}
	time.Sleep(3 * time.Second)
	if ended, _ := sent[n-1].Test(); ended {
		t.Errorf("the receiver has stored %d MiB", n)
	}
	for k, deadline := 0, time.Now().Add(hosttest.Patience); k < n; time.Sleep(time.Millisecond) {
		if _, ok := b.Receive(); ok {
			k++
		}
		if time.Now().After(deadline) {
			t.Fatalf("packet %d does not arrive", k)
		}
	}
	select {
	case e := <-list[0].events:
		t.Errorf("%+v", e)
	default:
	}
}

// A guest of a world whose ranks have all ended is told to start the run again.
func TestGuestWithoutRanks(t *testing.T) {
	list := meshes(t, 2, time.Minute, vet)
	contacts := list[0].Contacts([]int{0, 1})
	for _, m := range list {
		m.Break()
	}
	_, _, err := Join(contacts, "elsewhere", nil, time.Minute, vet)
	if fault.KindOf(err) != fault.Stopped || !strings.Contains(err.Error(), "start the run again") {
		t.Error(err)
	}
}
