package bridge

import (
	"encoding/json"
	"errors"

	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// kind is the last byte of a message. The bytes before it are those of a task or a result, so that
// neither is copied, or JSON.
type kind byte

// Kinds of messages to a bridge.
const (
	begin  kind = 'b' // a lambda.Network, that of all later tasks; the reply is a refusal
	send   kind = 't' // a task, from task.Encode
	ahead  kind = 'a' // the task.Name of an attempt whose task comes later
	report kind = 'r' // the reply is the bridge's report
	leave  kind = 'l' // a refusal, the final error of the part, which sends no more; the reply is empty
)

// Kinds of answers to a graph rank.
const (
	result kind = 'R' // a result, from task.Work
	failed kind = 'F' // a failing
	spent  kind = 'S' // a task.Spent
)

// Tags of messages to a bridge, of answers, and of replies, which are JSON without a kind.
const (
	tagTasks   = 1
	tagAnswers = 2
	tagReplies = 3
)

// seal returns the message of this kind with the bytes b.
func (k kind) seal(b []byte) []byte { return append(b, byte(k)) }

// message returns the message of this kind with v as JSON.
func (k kind) message(v any) []byte { return k.seal(encode(v)) }

// encode returns v as JSON. It panics for values other than numbers and text.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bridge: unencodable message: " + err.Error())
	}
	return b
}

// unseal returns the kind of a message and the bytes before it.
func unseal(b []byte) (kind, []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	return kind(b[len(b)-1]), b[:len(b)-1]
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

// answerOf decodes a message from messagesOf.
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
