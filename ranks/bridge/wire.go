package bridge

import (
	"encoding/json"
	"errors"

	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// A message ends with a byte that says what it is. A task and a result are their own
// bytes, which nobody copies for that; all else is JSON.
type kind byte

// Kinds of messages to a bridge.
const (
	begin  kind = 'b' // a lambda.Network: the tasks to come are of it; the reply is a refusal
	send   kind = 't' // task.Encode's
	ahead  kind = 'a' // the name of an attempt whose task comes later
	report kind = 'r' // the reply is what the bridge says of itself
	leave  kind = 'l' // nothing more comes from this part, and what its run ends with, a refusal; the reply is empty
)

// Kinds of answers to a graph rank.
const (
	result kind = 'R' // task.Work's
	failed kind = 'F' // a failing
	spent  kind = 'S' // a task.Spent
)

// Tags of the messages to a bridge, of answers, and of replies, which are JSON without
// a kind.
const (
	tagTasks   = 1
	tagAnswers = 2
	tagReplies = 3
)

// seal ends a message.
func (k kind) seal(b []byte) []byte { return append(b, byte(k)) }

// message is JSON of v as a message.
func (k kind) message(v any) []byte { return k.seal(reply(v)) }

// reply is JSON of v.
func reply(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bridge: a message that cannot be written: " + err.Error()) // they are numbers and text
	}
	return b
}

// unseal takes a message apart.
func unseal(b []byte) (kind, []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	return kind(b[len(b)-1]), b[:len(b)-1]
}

// refusal is an error on its way. One without text is none.
type refusal struct {
	Text string
	Kind fault.Kind
	Why  int // a pool.Failure, or none
}

const noFailure = -1

func refuse(err error) refusal {
	if err == nil {
		return refusal{Why: noFailure}
	}
	r := refusal{Text: err.Error(), Kind: fault.KindOf(err), Why: noFailure}
	if why := pool.Failure(0); errors.As(err, &why) {
		r.Why = int(why)
	}
	return r
}

// err returns the error as it arrives.
func (r refusal) err() error {
	if r.Text == "" {
		return nil
	}
	err := error(&fault.Error{Kind: r.Kind, Detail: r.Text})
	if r.Why >= 0 && r.Why <= int(pool.Crashed) {
		err = &failure{pool.Failure(r.Why), err}
	}
	return err
}

// failure is a pool.Failure with all that was said of it.
type failure struct {
	why pool.Failure
	all error
}

func (f *failure) Error() string   { return f.all.Error() }
func (f *failure) Unwrap() []error { return []error{f.why, f.all} }

// failing is a task.Failure on its way.
type failing struct {
	Name  task.Name
	Final bool
	Err   refusal
}

// messagesOf returns an answer as messages.
func messagesOf(a task.Answer) (list [][]byte) {
	if a.Spent != nil { // before what ends the attempt
		list = append(list, spent.message(a.Spent))
	}
	if f := a.Failed; f != nil {
		list = append(list, failed.message(failing{f.Name, f.Final, refuse(f.Err)}))
	}
	if a.Result != nil {
		list = append(list, result.seal(a.Result))
	}
	return list
}

// answerOf returns the answer that a message is.
func answerOf(k kind, body []byte) (task.Answer, error) {
	var err error
	switch k {
	case result:
		return task.Answer{Result: body}, nil
	case failed:
		var f failing
		if err = json.Unmarshal(body, &f); err == nil {
			return task.Answer{Failed: &task.Failure{Name: f.Name, Err: f.Err.err(), Final: f.Final}}, nil
		}
	case spent:
		var s task.Spent
		if err = json.Unmarshal(body, &s); err == nil {
			return task.Answer{Spent: &s}, nil
		}
	}
	return task.Answer{}, errors.Join(unexpected(k, body), err)
}

func unexpected(k kind, body []byte) error {
	return fault.New(fault.Runtime, "bridge", "", "invalid message of kind %q (%d bytes)", rune(k), len(body)).
		Then("run the same siafu on all ranks")
}
