// Package deploytest simulates the control APIs of AWS, as far as package deploy uses them. A small
// state machine of functions and roles answers Lambda's REST calls and IAM's query calls in the
// formats of the public API references. It records all calls.
package deploytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Account is the number of the account.
const Account = "123456789012"

// Refusal is the error response to a call.
type Refusal struct {
	Status        int
	Code, Message string
}

// Throttled returns AWS's error for throttled calls.
func Throttled() *Refusal {
	return &Refusal{http.StatusTooManyRequests, "TooManyRequestsException", "Rate exceeded"}
}

// Denied returns AWS's error for a missing permission.
func Denied(action string) *Refusal {
	return &Refusal{http.StatusForbidden, "AccessDeniedException", "User: arn:aws:iam::" + Account + ":user/u is not authorized to " +
		"perform: " + action + " on resource: * because no identity-based policy allows the " + action + " action"}
}

// Broken returns the error of a failed service.
func Broken() *Refusal {
	return &Refusal{http.StatusInternalServerError, "ServiceException", "An error"}
}

// Fake is a simulated account. Its fields may be changed while no call runs.
type Fake struct {
	URL       string
	Functions map[string]*Function
	Roles     map[string]*Role
	Calls     []string                            // in order, such as lambda:GetFunction
	Refuse    func(action string, n int) *Refusal // returns the error of the nth call of an action, from 1, or nil; may be nil
	Before    func(action string)                 // called before each call; may be nil
	After     func(action string)                 // called after each call, before its response; may be nil
	Looks     int                                 // calls of GetFunction during which a function is Pending or an update InProgress
	Spread    int                                 // calls of Lambda that do not accept a new role
	Fail      string                              // reason for which a created function becomes Failed; "": it becomes Active

	mu    sync.Mutex
	times map[string]int
}

// New starts an empty account.
func New(t testing.TB) *Fake {
	f := &Fake{Functions: map[string]*Function{}, Roles: map[string]*Role{}, Looks: 1, times: map[string]int{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.URL = s.URL
	return f
}

// Taken returns the recorded calls, and clears the record.
func (f *Fake) Taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.Calls
	f.Calls, f.times = nil, map[string]int{}
	return calls
}

type call struct {
	action, function string
	body             []byte
	form             url.Values // parameters of a call of IAM
}

// routes are Lambda's operations by method and path. NAME stands for the function.
var routes = map[string]string{
	"POST /2015-03-31/functions":                    "CreateFunction",
	"GET /2015-03-31/functions/NAME":                "GetFunction",
	"DELETE /2015-03-31/functions/NAME":             "DeleteFunction",
	"PUT /2015-03-31/functions/NAME/configuration":  "UpdateFunctionConfiguration",
	"PUT /2015-03-31/functions/NAME/code":           "UpdateFunctionCode",
	"PUT /2017-10-31/functions/NAME/concurrency":    "PutFunctionConcurrency",
	"DELETE /2017-10-31/functions/NAME/concurrency": "DeleteFunctionConcurrency",
}

func parse(r *http.Request) (call, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return call{}, err
	}
	if r.Method == http.MethodPost && r.URL.Path == "/" {
		form, err := url.ParseQuery(string(body))
		return call{action: "iam:" + form.Get("Action"), form: form}, err
	}
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	c := call{body: body}
	if len(words) > 2 {
		c.function, words[2] = words[2], "NAME"
	}
	operation := routes[r.Method+" /"+strings.Join(words, "/")]
	c.action = "lambda:" + operation
	if operation == "" {
		err = fmt.Errorf("no such call: %s %s", r.Method, r.URL.Path)
	}
	return c, err
}

// ServeHTTP implements http.Handler.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := parse(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	}
	if f.Before != nil {
		f.Before(c.action)
	}
	answer, refused := f.do(c)
	if f.After != nil {
		f.After(c.action)
	}
	if c.form != nil {
		answerQuery(w, c, answer, refused)
	} else {
		answerREST(w, c, answer, refused)
	}
}

func (f *Fake) do(c call) (any, *Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls = append(f.Calls, c.action)
	f.times[c.action]++
	if f.Refuse != nil {
		if r := f.Refuse(c.action, f.times[c.action]); r != nil {
			return nil, r
		}
	}
	if c.form != nil {
		return f.roles(c)
	}
	return f.functions(c)
}

func answerREST(w http.ResponseWriter, c call, answer any, r *Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Requestid", "8f7a")
	status := http.StatusOK
	switch {
	case r != nil:
		w.Header().Set("X-Amzn-Errortype", r.Code)
		status, answer = r.Status, map[string]string{"Type": "User", "Message": r.Message}
	case c.action == "lambda:CreateFunction":
		status = http.StatusCreated
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func answerQuery(w http.ResponseWriter, c call, answer any, r *Refusal) {
	w.Header().Set("Content-Type", "text/xml")
	operation := strings.TrimPrefix(c.action, "iam:")
	if r != nil {
		w.WriteHeader(r.Status)
		code := strings.TrimSuffix(r.Code, "Exception") // IAM's codes do not end so
		if r.Status == http.StatusTooManyRequests {
			code = "Throttling"
		}
		fmt.Fprintf(w, `<ErrorResponse `+
			`xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>8f7a</RequestId></ErrorResponse>`,
			code, r.Message)
		return
	}
	fmt.Fprintf(w, `<%[1]sResponse `+
		`xmlns="https://iam.amazonaws.com/doc/2010-05-08/">%[2]s<ResponseMetadata><RequestId>8f7a</RequestId></ResponseMetadata></%[1]sResponse>`,
		operation, answer)
}

func notFound(name string) *Refusal {
	return &Refusal{http.StatusNotFound, "ResourceNotFoundException",
		"Function not found: arn:aws:lambda:eu-central-1:" + Account + ":function:" + name}
}

func invalid(text string) *Refusal {
	return &Refusal{http.StatusBadRequest, "InvalidParameterValueException", text}
}
