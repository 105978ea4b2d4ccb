package tensor

import (
	"time"

	"siafu/kernels/task"
	"siafu/lambda/bill"
)

// Spent is the cost of invocations, in numbers that can be added over ranks.
type Spent struct {
	Invocations int64 // begun
	Again       int64 // of these, after the first of a task
	Out, Back   int64 // bytes of sent tasks and of received results, used or not
	Usage       bill.Usage
}

// NumSpent is the length of Numbers.
const NumSpent = 4 + bill.NumUsage

// Numbers returns s as a vector.
func (s Spent) Numbers() []float64 {
	return append([]float64{float64(s.Invocations), float64(s.Again), float64(s.Out), float64(s.Back)}, s.Usage.Numbers()...)
}

// SpentOf returns the inverse of Numbers.
func SpentOf(numbers []float64) Spent {
	return Spent{int64(numbers[0]), int64(numbers[1]), int64(numbers[2]), int64(numbers[3]), bill.UsageOf(numbers[4:])}
}

// Add adds the costs of o.
func (s *Spent) Add(o Spent) {
	s.Invocations += o.Invocations
	s.Again += o.Again
	s.Out += o.Out
	s.Back += o.Back
	s.Usage.Add(o.Usage)
}

// account charges each sent attempt at a task once: when its outcome and time are known, or
// when no more messages about it are possible.
type account struct {
	tariff bill.Tariff
	limit  time.Duration // of an invocation: the function's
	life   time.Duration // maximal life of an attempt; times are a Remote's
	open   map[task.Name]*attempt
	usage  bill.Usage
}

// attempt is an attempt that is not charged yet.
type attempt struct {
	sent, ended time.Duration
	over        bool       // it has ended
	class       bill.Class // of one that is over
	spent       *task.Spent
}

// begin opens an attempt that was sent, or begun ahead.
func (a *account) begin(name task.Name, now time.Duration) {
	if a.open[name] != nil { // it was begun ahead
		return
	}
	a.open[name] = &attempt{sent: now, class: bill.Wasted}
}

// markUsed records that the result of an attempt is used.
func (a *account) markUsed(name task.Name, now time.Duration) {
	class := bill.Counted
	if name.Attempt > 1 {
		class = bill.Retried
	}
	a.closeAttempt(name, class, now)
}

// markWasted records that an attempt has failed, or was too late.
func (a *account) markWasted(name task.Name, now time.Duration) {
	a.closeAttempt(name, bill.Wasted, now)
}

// closeAttempt takes what became of an attempt. What comes after the first end is a duplicate.
func (a *account) closeAttempt(name task.Name, c bill.Class, now time.Duration) {
	x := a.open[name]
	if x == nil || x.over {
		return
	}
	x.over, x.class, x.ended = true, c, now
	if x.spent != nil {
		a.charge(name, x)
	}
}

// drop records that the service has rejected an attempt, which costs nothing.
func (a *account) drop(name task.Name) { delete(a.open, name) }

func (a *account) addUsage(s *task.Spent) {
	x := a.open[s.Name]
	if x == nil {
		return
	}
	if x.spent = s; x.over {
		a.charge(s.Name, x)
	}
}

// charge charges an attempt. An ended attempt without a reported time is charged until its
// end; one without any message is charged the limit.
func (a *account) charge(name task.Name, x *attempt) {
	switch {
	case x.spent != nil:
		a.usage.Take(a.tariff, x.class, x.spent.Init, x.spent.Work)
	case x.over:
		a.usage.Take(a.tariff, x.class, 0, min(x.ended-x.sent, a.limit))
	default:
		a.usage.Take(a.tariff, bill.Wasted, 0, a.limit)
	}
	delete(a.open, name)
}

// expire charges attempts older than their maximal life.
func (a *account) expire(now time.Duration) {
	for name, x := range a.open {
		if now-x.sent >= a.life {
			a.charge(name, x)
		}
	}
}

// settle charges all outstanding attempts.
func (a *account) settle() {
	for name, x := range a.open {
		a.charge(name, x)
	}
}
