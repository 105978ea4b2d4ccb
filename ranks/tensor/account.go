package tensor

import (
	"time"

	"siafu/kernels/task"
	"siafu/lambda/bill"
)

// Spent is the cost of invocations, in numbers that can be added over ranks.
type Spent struct {
	Invocations int64 // begun
	Again       int64 // number of them that are not the first of a task
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

// account charges each sent attempt at a task once: when the attempt's outcome and time are known,
// or when no further message about the attempt is possible.
type account struct {
	tariff bill.Tariff
	limit  time.Duration // the function's time limit, charged if no time is known
	life   time.Duration // after this time since the start of an attempt, no message about it is possible
	open   map[task.Name]*attempt
	usage  bill.Usage
}

// attempt is an attempt that is not charged yet.
type attempt struct {
	sent, ended time.Duration
	over        bool       // whether the attempt has ended
	class       bill.Class // valid if over
	spent       *task.Spent
}

// begin records an attempt that was sent or invoked ahead.
func (a *account) begin(name task.Name, now time.Duration) {
	if a.open[name] != nil { // it was invoked ahead
		return
	}
	a.open[name] = &attempt{sent: now, class: bill.Wasted}
}

// markUsed records that the result of an attempt is used.
func (a *account) markUsed(name task.Name, now time.Duration) {
	class := bill.FirstUsed
	if name.Attempt > 1 {
		class = bill.Retried
	}
	a.closeAttempt(name, class, now)
}

// markWastedUnlessUsed records that an attempt has failed or that its result came too late. If
// markUsed has recorded the attempt, nothing changes.
func (a *account) markWastedUnlessUsed(name task.Name, now time.Duration) {
	a.closeAttempt(name, bill.Wasted, now)
}

// closeAttempt records the class of an attempt that has ended. Later calls for the same attempt have
// no effect, because they are due to duplicate messages.
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

// expire charges attempts that are older than life.
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
