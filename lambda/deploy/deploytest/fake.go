// Package deploytest is a stand-in for the control API of AWS, as far as deployments
// use it: a small state machine of functions and roles that answers Lambda's REST calls
// and IAM's query calls in the shapes of the public API references, and writes them down.
package deploytest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Account is the number of the account.
const Account = "123456789012"

// Refusal is an error that a call is answered with.
type Refusal struct {
	Status        int
	Code, Message string
}

// Throttled, Denied and Broken are errors as AWS has them.
func Throttled() *Refusal {
	return &Refusal{http.StatusTooManyRequests, "TooManyRequestsException", "Rate exceeded"}
}

func Denied(action string) *Refusal {
	return &Refusal{http.StatusForbidden, "AccessDeniedException", "User: arn:aws:iam::" + Account + ":user/u is not authorized to perform: " + action + " on resource: * because no identity-based policy allows the " + action + " action"}
}

func Broken() *Refusal {
	return &Refusal{http.StatusInternalServerError, "ServiceException", "An error"}
}

// Function is a function of the account.
type Function struct {
	Config
	Tags     map[string]string
	Reserved *int
	Zip      []byte
	looks    int    // until what is under way is done
	fail     string // why it then is not Active
}

// Config is what Lambda tells of a function's configuration, and is told.
type Config struct {
	FunctionName, FunctionArn, Runtime, Role, Handler, Description string
	Architectures                                                  []string
	MemorySize, Timeout                                            int
	CodeSize                                                       int
	CodeSha256, LastModified, PackageType, Version                 string
	State, StateReason, StateReasonCode                            string
	LastUpdateStatus, LastUpdateStatusReason                       string
	VpcConfig                                                      *VPC
}

// VPC is where a function is in a network.
type VPC struct {
	SubnetIds, SecurityGroupIds []string
	VpcId                       string
}

// Role is a role of the account.
type Role struct {
	Tags     map[string]string
	Policies []string
	unknown  int // calls of Lambda until it can take it on
}

// Fake is an account. Its fields may be changed while no call is under way.
type Fake struct {
	URL       string
	Functions map[string]*Function
	Roles     map[string]*Role
	Calls     []string                            // in their order, as lambda:GetFunction
	Refuse    func(action string, n int) *Refusal // of the nth call of its kind, from 1; may be nil
	Before    func(action string)                 // is called before a call is done; may be nil
	After     func(action string)                 // and after it is done, before it is answered; may be nil
	Looks     int                                 // that a function is Pending, and an update InProgress
	Spread    int                                 // calls of Lambda's that do not know a new role yet
	Fail      string                              // why a function that is made ends Failed

	mu    sync.Mutex
	times map[string]int
}

// New starts an account that is empty.
func New(t testing.TB) *Fake {
	f := &Fake{Functions: map[string]*Function{}, Roles: map[string]*Role{}, Looks: 1, times: map[string]int{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.URL = s.URL
	return f
}

// Taken are the calls up to now, and forgets them.
func (f *Fake) Taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.Calls
	f.Calls, f.times = nil, map[string]int{}
	return calls
}

// call is one request.
type call struct {
	action, function string
	body             []byte
	form             url.Values // of IAM
}

// routes are Lambda's operations by method and path, NAME being the function.
var routes = map[string]string{
	"POST /2015-03-31/functions":                    "CreateFunction",
	"GET /2015-03-31/functions/NAME":                "GetFunction",
	"DELETE /2015-03-31/functions/NAME":             "DeleteFunction",
	"PUT /2015-03-31/functions/NAME/configuration":  "UpdateFunctionConfiguration",
	"PUT /2015-03-31/functions/NAME/code":           "UpdateFunctionCode",
	"PUT /2017-10-31/functions/NAME/concurrency":    "PutFunctionConcurrency",
	"DELETE /2017-10-31/functions/NAME/concurrency": "DeleteFunctionConcurrency",
}

// parse tells which call a request is.
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

// ServeHTTP answers a call.
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

// do takes a call down and does it.
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
		code := strings.TrimSuffix(r.Code, "Exception") // IAM's names have no such ending
		if r.Status == http.StatusTooManyRequests {
			code = "Throttling"
		}
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>8f7a</RequestId></ErrorResponse>`, code, r.Message)
		return
	}
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/">%[2]s<ResponseMetadata><RequestId>8f7a</RequestId></ResponseMetadata></%[1]sResponse>`, operation, answer)
}

func notFound(name string) *Refusal {
	return &Refusal{http.StatusNotFound, "ResourceNotFoundException", "Function not found: arn:aws:lambda:eu-central-1:" + Account + ":function:" + name}
}

func invalid(text string) *Refusal {
	return &Refusal{http.StatusBadRequest, "InvalidParameterValueException", text}
}

// functions does Lambda's calls.
func (f *Fake) functions(c call) (any, *Refusal) {
	if c.action == "lambda:CreateFunction" {
		return f.create(c.body)
	}
	fn := f.Functions[c.function]
	if fn == nil {
		return nil, notFound(c.function)
	}
	switch c.action {
	case "lambda:GetFunction":
		return fn.look(), nil
	case "lambda:DeleteFunction":
		delete(f.Functions, c.function)
		return nil, nil
	case "lambda:DeleteFunctionConcurrency":
		fn.Reserved = nil
		return nil, nil
	case "lambda:PutFunctionConcurrency":
		var in struct{ ReservedConcurrentExecutions int }
		_ = json.Unmarshal(c.body, &in)
		fn.Reserved = &in.ReservedConcurrentExecutions
		return in, nil
	}
	return f.update(fn, c)
}

// create makes a function, Pending.
func (f *Fake) create(body []byte) (any, *Refusal) {
	var in struct {
		Config
		Code struct{ ZipFile []byte }
		Tags map[string]string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, invalid(err.Error())
	}
	if f.Functions[in.FunctionName] != nil {
		return nil, &Refusal{http.StatusConflict, "ResourceConflictException", "Function already exist: " + in.FunctionName}
	}
	if r := f.takeOn(in.Role, in.VpcConfig); r != nil {
		return nil, r
	}
	fn := &Function{Config: in.Config, Tags: in.Tags, looks: f.Looks, fail: f.Fail}
	fn.FunctionArn = "arn:aws:lambda:eu-central-1:" + Account + ":function:" + in.FunctionName
	fn.Version, fn.LastModified = "$LATEST", "2026-01-02T03:04:05.000+0000"
	fn.State, fn.StateReason, fn.StateReasonCode = "Pending", "The function is being created.", "Creating"
	fn.LastUpdateStatus = "Successful"
	if r := fn.setCode(in.Code.ZipFile); r != nil {
		return nil, r
	}
	f.Functions[in.FunctionName] = fn
	return fn.Config, nil
}

// takeOn tells whether Lambda can take a role on.
func (f *Fake) takeOn(arn string, v *VPC) *Refusal {
	_, name, _ := strings.Cut(arn, ":role/")
	r := f.Roles[name]
	if r == nil || r.unknown > 0 {
		if r != nil {
			r.unknown--
		}
		return invalid("The role defined for the function cannot be assumed by Lambda.")
	}
	if v != nil && len(v.SubnetIds) > 0 && !slices.ContainsFunc(r.Policies, func(p string) bool { return strings.HasSuffix(p, "/AWSLambdaVPCAccessExecutionRole") }) {
		return invalid("The provided execution role does not have permissions to call CreateNetworkInterface on EC2")
	}
	return nil
}

// setCode takes a zip with a bootstrap that can be run.
func (fn *Function) setCode(text []byte) *Refusal {
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode().Perm() != 0o755 {
		return invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
	}
	sum := sha256.Sum256(text)
	fn.Zip, fn.CodeSize, fn.CodeSha256 = text, len(text), base64.StdEncoding.EncodeToString(sum[:])
	return nil
}

// look is GetFunction's answer; with each, what is under way comes nearer to its end.
func (fn *Function) look() any {
	if fn.looks == 0 {
		switch {
		case fn.State == "Pending" && fn.fail != "":
			fn.State, fn.StateReason, fn.StateReasonCode = "Failed", fn.fail, "EniLimitExceeded"
		case fn.State == "Pending":
			fn.State, fn.StateReason, fn.StateReasonCode = "Active", "", ""
		}
		if fn.LastUpdateStatus == "InProgress" {
			fn.LastUpdateStatus = "Successful"
		}
	}
	fn.looks = max(fn.looks-1, 0)
	answer := map[string]any{
		"Configuration": fn.Config, "Tags": fn.Tags,
		"Code": map[string]string{"RepositoryType": "S3", "Location": "https://secret.example/signed"},
	}
	if fn.Reserved != nil {
		answer["Concurrency"] = map[string]int{"ReservedConcurrentExecutions": *fn.Reserved}
	}
	return answer
}

// update begins a change of configuration or code, unless one is under way.
func (f *Fake) update(fn *Function, c call) (any, *Refusal) {
	if fn.looks > 0 || fn.LastUpdateStatus == "InProgress" || fn.State == "Pending" {
		return nil, &Refusal{http.StatusConflict, "ResourceConflictException", "The operation cannot be performed at this time. An update is in progress for resource: " + fn.FunctionArn}
	}
	var code struct {
		ZipFile       []byte
		Architectures []string
	}
	switch c.action {
	case "lambda:UpdateFunctionCode":
		if err := json.Unmarshal(c.body, &code); err != nil {
			return nil, invalid(err.Error())
		}
		if r := fn.setCode(code.ZipFile); r != nil {
			return nil, r
		}
		fn.Architectures = code.Architectures
	default:
		next := fn.Config
		next.VpcConfig = nil
		if err := json.Unmarshal(c.body, &next); err != nil {
			return nil, invalid(err.Error())
		}
		if r := f.takeOn(next.Role, next.VpcConfig); r != nil {
			return nil, r
		}
		fn.Config = next
	}
	fn.LastUpdateStatus, fn.looks = "InProgress", f.Looks
	return fn.Config, nil
}

// roles does IAM's calls.
func (f *Fake) roles(c call) (any, *Refusal) {
	name := c.form.Get("RoleName")
	r := f.Roles[name]
	if c.action == "iam:CreateRole" {
		if r != nil {
			return nil, &Refusal{http.StatusConflict, "EntityAlreadyExists", "Role with name " + name + " already exists."}
		}
		r = &Role{Tags: map[string]string{}, unknown: f.Spread}
		for i := 1; c.form.Has(fmt.Sprintf("Tags.member.%d.Key", i)); i++ {
			r.Tags[c.form.Get(fmt.Sprintf("Tags.member.%d.Key", i))] = c.form.Get(fmt.Sprintf("Tags.member.%d.Value", i))
		}
		f.Roles[name] = r
		return "<CreateRoleResult>" + r.xml(name) + "</CreateRoleResult>", nil
	}
	if r == nil {
		return nil, &Refusal{http.StatusNotFound, "NoSuchEntity", "The role with name " + name + " cannot be found."}
	}
	policy := c.form.Get("PolicyArn")
	switch c.action {
	case "iam:GetRole":
		return "<GetRoleResult>" + r.xml(name) + "</GetRoleResult>", nil
	case "iam:ListAttachedRolePolicies":
		list := "<ListAttachedRolePoliciesResult><IsTruncated>false</IsTruncated><AttachedPolicies>"
		for _, p := range r.Policies {
			list += "<member><PolicyName>" + p[strings.LastIndex(p, "/")+1:] + "</PolicyName><PolicyArn>" + p + "</PolicyArn></member>"
		}
		return list + "</AttachedPolicies></ListAttachedRolePoliciesResult>", nil
	case "iam:AttachRolePolicy":
		r.Policies = append(r.Policies, policy)
	case "iam:DetachRolePolicy":
		r.Policies = slices.DeleteFunc(r.Policies, func(p string) bool { return p == policy })
	case "iam:DeleteRole":
		if len(r.Policies) > 0 {
			return nil, &Refusal{http.StatusConflict, "DeleteConflict", "Cannot delete entity, must detach all policies first."}
		}
		delete(f.Roles, name)
	}
	return "", nil
}

func (r *Role) xml(name string) string {
	text := "<Role><Path>/</Path><RoleName>" + name + "</RoleName><RoleId>AROA</RoleId><Arn>" + ARN(name) + "</Arn><CreateDate>2026-01-02T03:04:05Z</CreateDate><Tags>"
	for key, value := range r.Tags {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(value))
		text += "<member><Key>" + key + "</Key><Value>" + b.String() + "</Value></member>"
	}
	return text + "</Tags></Role>"
}

// ARN is that of a role.
func ARN(role string) string { return "arn:aws:iam::" + Account + ":role/" + role }
