package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/pool"
	"siafu/ranks/bridge"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// echo answers tasks as a test says, in goroutines of its own.
type echo struct {
	answers chan task.Answer
	ended   chan struct{}
	send    func(e *echo, message []byte) error
	early   chan task.Name
}

func (e *echo) Send(m []byte) error { return e.send(e, m) }

func (e *echo) InvokeAhead(n task.Name) error { e.early <- n; return nil }

func (e *echo) Answers() <-chan task.Answer { return e.answers }

func (e *echo) Close() error { close(e.ended); return nil }

func (e *echo) give(a task.Answer) {
	go func() {
		select {
		case e.answers <- a:
		case <-e.ended:
		}
	}()
}

// bridged runs parts with clients of one bridge, which is the last member.
func bridged(t *testing.T, parts int, send func(*echo, []byte) error, part func(*bridge.Client, int) error) (end error) {
	t.Helper()
	err := inproc.Run(parts+1, func(w world.Comm) (err error) {
		w.SetLimits(world.Limits{Abort: hosttest.Patience})
		if w.Rank() < parts {
			c := bridge.NewClient(w, parts)
			err := c.Begin(lambda.Network{Kernel: fmt.Sprint(w.Rank())})
			if err == nil {
				err = part(c, w.Rank())
			}
			return errors.Join(err, c.Leave(err))
		}
		end, err = bridge.Run(bridge.Options{
			Comm: w, Parts: world.All(parts), Report: func() any { return []int{7} }, At: func(int) {},
			Open: func(part int, n lambda.Network) (tensor.Transport, error) {
				if n.Kernel != fmt.Sprint(part) {
					return nil, fault.New(fault.Config, "open", "", "part %d has the network of %s", part, n.Kernel)
				}
				return &echo{answers: make(chan task.Answer), ended: make(chan struct{}), send: send, early: make(chan task.Name, 100)}, nil
			},
		})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return end
}

// named returns a message of a task with the given rows, which is also its result here.
func named(t testing.TB, n task.Name, rows int) []byte {
	t.Helper()
	s := model.Spec{Kind: "mlp", Dims: []int{8, 3}, Seed: 1}
	s.Choose(model.Load{}, model.Choices{Order: "apply-first", CacheInput: "off"})
	net, ops, a := model.New(s, false), kernels.NewTeam(1), mapped.NewArena()
	defer a.Free()
	defer ops.Close()
	ids := make([]uint32, rows)
	in := model.Place(ops, a, graph.Features{Rows: rows, Dim: 8, Dense: make([]float32, rows*8)}, ids, ids)
	store := model.NewStore(net, in, model.InStep, ops, a)
	n.Stage = model.Emit
	work := task.Task{Name: n, Do: []model.Do{{Stage: model.Emit}}, Frame: store.Frame(0, rows, ops, kernels.Mat{})}
	return work.Encode(nil, ops)
}

// Every part gets the answers of its own tasks, whatever they are, and nothing else.
func TestAnswers(t *testing.T) {
	const parts, tasks = 3, 200
	end := bridged(t, parts, func(e *echo, m []byte) error {
		name, err := task.NameOf(m)
		switch {
		case err != nil:
			return err
		case name.Interval%5 == 1:
			return fmt.Errorf("as it must: %w", pool.Throttled)
		case name.Interval%5 == 2:
			e.give(task.Answer{Failed: &task.Failure{Name: name, Err: fault.New(fault.Config, "", "", "too large"), Final: true}})
		case name.Interval%5 == 3:
			e.give(task.Answer{Result: m, Spent: &task.Spent{Name: name, Work: time.Duration(name.Interval)}})
		default:
			e.give(task.Answer{Result: m})
		}
		return nil
	}, func(c *bridge.Client, part int) error {
		for k := range tasks {
			if err := c.Send(named(t, task.Name{Part: part, Interval: k, Attempt: 2}, 1+k)); err != nil {
				return err
			}
		}
		results, failures, spent := map[int]bool{}, map[int]bool{}, 0
		for len(results)+len(failures) < tasks || spent < tasks/5 {
			select {
			case a := <-c.Answers():
				if a.Spent != nil {
					if spent++; a.Spent.Part != part || a.Spent.Work != time.Duration(a.Spent.Interval) {
						return fmt.Errorf("%+v", a.Spent)
					}
				}
				if f := a.Failed; f != nil {
					throttled := errors.Is(f.Err, pool.Throttled)
					if f.Part != part || f.Attempt != 2 || throttled != (f.Interval%5 == 1) || f.Final == throttled ||
						!throttled && fault.KindOf(f.Err) != fault.Config {
						return fmt.Errorf("%+v: %v", f, f.Err)
					}
					failures[f.Interval] = true
				}
				if a.Result != nil {
					n, err := task.NameOf(a.Result)
					if err != nil || n.Part != part || len(a.Result) < 32*n.Interval {
						return fmt.Errorf("%v: %w", n, err)
					}
					results[n.Interval] = true
				}
			case <-time.After(hosttest.Patience):
				return fmt.Errorf("part %d has %d results and %d failures", part, len(results), len(failures))
			}
		}
		var said []int
		if err := c.Report(&said); err != nil || len(said) != 1 || said[0] != 7 {
			return fmt.Errorf("the bridge says %v: %w", said, err)
		}
		return nil
	})
	if end != nil {
		t.Error(end)
	}
}

// A part may leave while its tasks run or are never answered. The bridge ends with the part's
// error.
func TestLeaving(t *testing.T) {
	end := bridged(t, 2, func(e *echo, m []byte) error { return nil }, func(c *bridge.Client, part int) error {
		for k := range 50 {
			if err := c.Send(named(t, task.Name{Part: part, Interval: k}, 5)); err != nil {
				return err
			}
		}
		return nil
	})
	if end != nil {
		t.Error(end)
	}
	err := inproc.Run(2, func(w world.Comm) (err error) {
		if w.Rank() == 0 {
			return bridge.NewClient(w, 1).Leave(fault.New(fault.Missing, "open", "", "it is not there"))
		}
		end, err = bridge.Run(bridge.Options{Comm: w, Parts: []int{0}})
		return err
	})
	if err != nil || fault.KindOf(end) != fault.Missing || !strings.Contains(end.Error(), "it is not there") {
		t.Error(err, end)
	}
}

// A network that the bridge can have no tasks done of is refused, with the bridge's words.
func TestRefusal(t *testing.T) {
	err := inproc.Run(2, func(w world.Comm) error {
		if w.Rank() == 1 {
			_, err := bridge.Run(bridge.Options{Comm: w, Parts: []int{0}, Open: func(int, lambda.Network) (tensor.Transport, error) {
				return nil, fault.New(fault.Config, "lambda", "", "no region").Then("set one")
			}})
			return err
		}
		c := bridge.NewClient(w, 1)
		if err := c.Begin(lambda.Network{}); fault.KindOf(err) != fault.Config || err.Error() != "lambda: no region; set one" {
			return fmt.Errorf("it is refused with %v", err)
		}
		return c.Leave(nil)
	})
	if err != nil {
		t.Error(err)
	}
}
