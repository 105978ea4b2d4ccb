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
	NoToken   Refusal = iota // a request without a token
	Wrong                    // the token of no known ticket
	Reused                   // a second fetch or a second result
	Early                    // a result of a task that was not fetched
	Withdrawn                // the ticket was withdrawn
	Expired                  // the ticket expired
	OtherTask                // a result of another task or attempt
	Oversized                // a result above the maximum of its ticket
	Malformed                // an invalid message or an unknown request
	Full                     // no memory for a result
	Slow                     // a read or a write exceeded its deadline
	Broken                   // the connection ended during a request
	Crowded                  // a connection above the limit
	Silent                   // a connection without a request, such as one without TLS or HTTP
	Closed                   // the endpoint was closed
	refusals
)

// refusalInfo is the name of a refusal in statistics, and the HTTP status and text of its response.
type refusalInfo struct {
	name   string
	status int
	text   string
}

var refusalInfos = [refusals]refusalInfo{
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
	Crowded:   {name: "above the limit of connections"},
	Silent:    {name: "without a request"},
	Closed:    {"closed", http.StatusServiceUnavailable, "the endpoint has been closed"},
}

// String returns the name of a refusal in statistics.
func (r Refusal) String() string { return refusalInfos[r].name }

// Stats are the statistics of an endpoint.
type Stats struct {
	Fetched, Answered            int           // completely sent tasks, accepted results
	BytesOut, BytesIn            int64         // of tasks sent, of results accepted
	Held, MostHeld               int64         // bytes held now; peak of tasks plus peak of results
	Open                         int           // open tickets
	Connections, PeakConnections int           // now, and their peak
	Refused                      [refusals]int // by Refusal
}

// Refusals returns the total number of refusals.
func (s Stats) Refusals() (n int) {
	for _, k := range s.Refused {
		n += k
	}
	return n
}

// RefusalSummary lists the refusals by their reason.
func (s Stats) RefusalSummary() string {
	var list []string
	for why, n := range s.Refused {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %v", n, Refusal(why)))
		}
	}
	return strings.Join(list, ", ")
}
