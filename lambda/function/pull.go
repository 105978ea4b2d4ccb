package function

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"siafu/halo/codec"
	"siafu/kernels/task"
	"siafu/lambda"
)

// pull fetches a task, computes it and sends its result, which it may corrupt.
func (f *Function) pull(ctx context.Context, p lambda.Pull, corrupt bool) (lambda.Reply, error) {
	if err := p.Check(); err != nil {
		return lambda.Reply{}, err
	}
	l, began := f.dial(p), time.Now()
	answer, err := l.ask(ctx, http.MethodGet, lambda.TaskPath, p.Token, nil, http.StatusOK)
	if err != nil {
		return lambda.Reply{}, err
	}
	defer answer.Body.Close()
	body := &meter{r: answer.Body, waited: time.Since(began)}
	result, err := task.WorkFrom(f.network, body, nil, f.ops, codec.TaskCodec)
	if err != nil {
		return lambda.Reply{}, err
	}
	// The connection can be reused for the result only if the body was read to its end.
	if n, _ := body.Read(make([]byte, 1)); n > 0 {
		return lambda.Reply{}, errors.New("data follows the task")
	}
	worked := time.Since(began)
	if n := int64(len(result)); n > p.MostResult {
		return lambda.Reply{Refused: lambda.TooLarge("the result of a task", n, p.MostResult).Error()}, nil
	}
	if corrupt {
		result[len(result)/2] ^= 1
	}
	if err := l.push(ctx, p.Token, result); err != nil {
		return lambda.Reply{}, err
	}
	return lambda.Reply{Spent: &lambda.Spent{
		In: body.n, Out: int64(len(result)),
		Fetch: body.waited.Microseconds(), Work: (worked - body.waited).Microseconds(), Push: (time.Since(began) - worked).Microseconds(),
	}}, nil
}

// push sends a result.
func (l *connection) push(ctx context.Context, token string, result []byte) error {
	answer, err := l.ask(ctx, http.MethodPost, lambda.ResultPath, token, result, http.StatusNoContent)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// meter counts the bytes that are read, and the time of waiting for them.
type meter struct {
	r      io.Reader
	n      int64
	waited time.Duration
}

func (m *meter) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := m.r.Read(p)
	m.waited += time.Since(began)
	m.n += int64(n)
	return n, err
}
