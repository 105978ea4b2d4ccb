package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// fetcher downloads single files over HTTP.
type fetcher struct {
	client   *http.Client
	attempts int           // maximum number of consecutive attempts without progress
	pause    time.Duration // after the first such attempt; doubled after each further one
	most     time.Duration // maximum pause
	stall    time.Duration // maximum time without a byte, after which the attempt is aborted
	every    time.Duration // interval of progress lines
	log      func(format string, args ...any)
}

// A download has no total time limit because a file may be large and the network slow. Each
// step has a limit.
func newFetcher() *fetcher {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.ResponseHeaderTimeout = 30 * time.Second
	return &fetcher{
		client:   &http.Client{Transport: t},
		attempts: 5,
		pause:    time.Second,
		most:     30 * time.Second,
		stall:    30 * time.Second,
		every:    5 * time.Second,
		log:      func(string, ...any) {},
	}
}

// fetch ensures that path is the file at the URL from and that its checksum is correct. It
// writes to path.part and renames.
func (f *fetcher) fetch(ctx context.Context, from, path string, want file) error {
	if _, err := os.Stat(path); err == nil {
		return f.verify(from, path, path, want)
	}
	part := path + ".part"
	if err := f.persist(ctx, from, path, part, want); err != nil {
		return err
	}
	if err := f.verify(from, part, path, want); err != nil {
		return err
	}
	return durable.Rename(op, part, path)
}

// enough is the number of bytes that an attempt must receive to count as progress. A network
// that breaks every few minutes still gets a large file. A server that sends only a few bytes
// per attempt is abandoned.
const enough = 1 << 20

// persist calls attempt until the file is complete, an error is permanent, or several attempts
// in a row make no progress.
func (f *fetcher) persist(ctx context.Context, from, path, part string, want file) error {
	pause := f.pause
	for failed := 0; ; {
		before := sizeOf(part)
		retry, err := f.attempt(ctx, from, part, want)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return (&fault.Error{Op: op, Kind: fault.Stopped, Path: from, Err: ctx.Err()}).
				Then("run it again: it continues after %d bytes", sizeOf(part))
		case !retry:
			return err
		}
		if failed++; sizeOf(part) >= before+enough {
			failed, pause = 0, f.pause
		}
		if failed == f.attempts {
			return (&fault.Error{Op: op, Kind: fault.IO, Path: from, Err: err}).
				Then("check the network and run it again, or fetch that URL with another program and store it as %s", path)
		}
		f.log("download url=%s error=%q retry_in=%s", from, err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, f.most)
	}
}

// attempt requests the missing bytes of part and appends them. retry reports whether another
// attempt may succeed.
func (f *fetcher) attempt(ctx context.Context, from, part string, want file) (retry bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return false, fault.New(fault.Usage, op, from, "%v", err)
	}
	have := sizeOf(part)
	// With compression, byte ranges would refer to the compressed data.
	request.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	response, err := f.client.Do(request)
	if err != nil {
		return true, cause(err)
	}
	defer response.Body.Close()
	start, done, retry, err := begin(response, from, part, have, want)
	if done || err != nil {
		return retry, err
	}
	retry, err = f.save(response, from, part, start, want, cancel)
	if err != nil && context.Cause(ctx) == errStalled {
		err = errStalled
	}
	return retry, err
}

// cause returns err without the URL, which the fault already contains.
func cause(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// begin reads the response's header. start is the file offset of the body; done reports that
// part is already complete.
func begin(r *http.Response, from, part string, have int64, want file) (start int64, done, retry bool, err error) {
	switch {
	case r.StatusCode == http.StatusOK:
		return 0, false, false, nil // the whole file, whatever range was requested
	case r.StatusCode == http.StatusPartialContent:
		var first int64
		if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-", &first); err != nil || first != have {
			os.Remove(part)
			return 0, false, true, fmt.Errorf("requested bytes from %d, got Content-Range %q", have, r.Header.Get("Content-Range"))
		}
		return have, false, false, nil
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		var size int64
		if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes */%d", &size); err == nil && size == have &&
			(want.Bytes == 0 || size == want.Bytes) {
			return have, true, false, nil
		}
		os.Remove(part) // longer than the file: part is from another version
		return 0, false, true, fmt.Errorf("the server has no bytes from %d", have)
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return 0, false, false, fault.New(fault.Missing, op, from, "the server answers %s", r.Status).
			Then("find %s on another server: it may have moved", want.Name)
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout:
		return 0, false, true, fmt.Errorf("the server answers %s", r.Status)
	}
	return 0, false, false, fault.New(fault.IO, op, from, "the server answers %s", r.Status).
		Then("fetch that URL with another program and store it next to %s without .part", part)
}

// save writes the body to part at offset start and syncs the file.
func (f *fetcher) save(r *http.Response, from, part string, start int64, want file,
	cancel context.CancelCauseFunc) (retry bool, err error) {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return false, fault.System(op, part, err)
	}
	defer out.Close()
	if err := out.Truncate(start); err != nil {
		return false, fault.System(op, part, err)
	}
	if _, err := out.Seek(start, io.SeekStart); err != nil {
		return false, fault.System(op, part, err)
	}
	body := &watched{from: r.Body, fetcher: f, url: from, at: start, total: total(r, start, want), cancel: cancel}
	defer body.watch()()
	var most io.Reader = body
	if want.Bytes > 0 { // one byte more, to detect a file that is too long
		most = io.LimitReader(body, want.Bytes-start+1)
	}
	_, err = io.Copy(out, most)
	if e := out.Sync(); err == nil && e != nil {
		err = e
	}
	var local *os.PathError // a local write failed, not the network
	if errors.As(err, &local) {
		return false, fault.System(op, part, err)
	}
	tooLong := want.Bytes > 0 && body.at > want.Bytes // verify reports it
	if err == nil && body.at < body.total && !tooLong {
		err = io.ErrUnexpectedEOF
	}
	return true, err
}

// total returns the size of the whole file, or 0 if it is unknown.
func total(r *http.Response, start int64, want file) int64 {
	if r.ContentLength >= 0 {
		return start + r.ContentLength
	}
	return want.Bytes
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
