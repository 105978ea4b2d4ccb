package bridge

import (
	"encoding/json"
	"errors"

	"siafu/internal/fault"
	"siafu/internal/wire"
	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// Tags of messages to a bridge, of answers, and of replies, which are JSON without a kind.
const (
	tagTasks   = 1
	tagAnswers = 2
	tagReplies = 3
)

// message returns the message of a kind with v as JSON.
func message(k wire.Kind, v any) []byte { return k.Seal(encode(v)) }

// encode returns v as JSON. It panics for values other than numbers and text.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bridge: unencodable message: " + err.Error())
	}
	return b
}

// refusal is the wire form of an error. Its Text is empty for nil.
type refusal struct {
	Text string
	Kind fault.Kind
	Why  int // a pool.Failure or noFailure
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

// err returns the error, nil if the text is empty.
func (r refusal) err() error {
	if r.Text == "" {
		return nil
	}
	err := error(&fault.Error{Kind: r.Kind, Detail: r.Text})
	if r.Why >= 0 && r.Why <= int(pool.Crashed) {
		err = &poolError{pool.Failure(r.Why), err}
	}
	return err
}

// poolError is a received error whose cause is a pool.Failure.
type poolError struct {
	why pool.Failure
	all error
}

func (f *poolError) Error() string   { return f.all.Error() }
func (f *poolError) Unwrap() []error { return []error{f.why, f.all} }

// failing is the wire form of a task.Failure.
type failing struct {
	Name  task.Name
	Final bool
	Err   refusal
}

func messagesOf(a task.Answer) (list [][]byte) {
	if a.Spent != nil { // first, because a failure or result ends the attempt
		list = append(list, message(wire.Spent, a.Spent))
	}
	if f := a.Failed; f != nil {
		list = append(list, message(wire.Failed, failing{f.Name, f.Final, refuse(f.Err)}))
	}
	if a.Result != nil {
		list = append(list, wire.Result.Seal(a.Result))
	}
	return list
}

// answerOf decodes a message from messagesOf.
func answerOf(from int, k wire.Kind, body []byte) (task.Answer, error) {
	var err error
	switch k {
	case wire.Result:
		return task.Answer{Result: body}, nil
	case wire.Failed:
		var f failing
		if err = json.Unmarshal(body, &f); err == nil {
			return task.Answer{Failed: &task.Failure{Name: f.Name, Err: f.Err.err(), Final: f.Final}}, nil
		}
	case wire.Spent:
		var s task.Spent
		if err = json.Unmarshal(body, &s); err == nil {
			return task.Answer{Spent: &s}, nil
		}
	default:
		return task.Answer{}, wire.Unexpected("bridge", from, k)
	}
	return task.Answer{}, wire.Damaged("bridge", from, k, "%v", err)
}
