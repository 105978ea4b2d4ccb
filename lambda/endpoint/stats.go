package endpoint

import (
	"fmt"
	"net/http"
	"strings"
)

// Refusal is the reason of a refused request or connection.
type Refusal int

// Refusals.
const (
	NoToken   Refusal = iota // of a request
	Wrong                    // token: of no ticket that is known
	Reused                   // a task was fetched, or answered, before
	Early                    // an answer to what nobody has fetched
	Withdrawn                // ticket
	Expired                  // ticket
	OtherTask                // a result of another task, or attempt, than the ticket's
	Oversized                // a result above the ticket's bound
	Malformed                // no message, or no request that is known here
	Full                     // no memory for a result
	Slow                     // the deadline of a read or a write has passed
	Broken                   // the connection ended in the middle
	Crowded                  // a connection above the bound
	Silent                   // a connection that brought no request: no TLS, no HTTP, nothing
	Closed                   // the endpoint
	refusals
)

// hint is the name of a refusal in statistics, and its text in responses.
type hint struct {
	name   string
	status int
	text   string
}

var hints = [refusals]hint{
	NoToken:   {"without token", http.StatusUnauthorized, "a request without a token"},
	Wrong:     {"wrong token", http.StatusUnauthorized, "no ticket has this token"},
	Reused:    {"used token", http.StatusConflict, "the token has been used"},
	Early:     {"early", http.StatusConflict, "a result of a task that has not been fetched"},
	Withdrawn: {"withdrawn", http.StatusGone, "the ticket has been withdrawn"},
	Expired:   {"expired", http.StatusGone, "the ticket has expired"},
	OtherTask: {"of another task", http.StatusForbidden, "the result belongs to another task than the token"},
	Oversized: {"too large", http.StatusRequestEntityTooLarge, "a result that is larger than its ticket allows"},
	Malformed: {"malformed", http.StatusBadRequest, "neither a result nor a request for a task"},
	Full:      {"without memory", http.StatusServiceUnavailable, "no memory for a result"},
	Slow:      {"too slow", http.StatusRequestTimeout, "the request takes too long"},
	Broken:    {"broken off", http.StatusBadRequest, "the connection has ended in the middle"},
	Crowded:   {name: "above the bound of connections"},
	Silent:    {name: "without a request"},
	Closed:    {"closed", http.StatusServiceUnavailable, "the endpoint has been closed"},
}

// String names a refusal, as a count of it does.
func (r Refusal) String() string { return hints[r].name }

// Stats are the statistics of an endpoint.
type Stats struct {
	Fetched, Answered   int           // tasks that went out whole, results that were taken
	BytesOut, BytesIn   int64         // of these
	Held, MostHeld      int64         // bytes of tasks and results: now, and at most of both
	Open                int           // tickets
	Connections, AtMost int           // now, and most at a time
	Refused             [refusals]int // by Refusal
}

// Refusals returns the total number of refusals.
func (s Stats) Refusals() (n int) {
	for _, k := range s.Refused {
		n += k
	}
	return n
}

// Told lists the refusals by their reason.
func (s Stats) Told() string {
	var list []string
	for why, n := range s.Refused {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %v", n, Refusal(why)))
		}
	}
	return strings.Join(list, ", ")
}
