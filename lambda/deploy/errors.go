package deploy

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"siafu/internal/fault"
)

// answer is an error in AWS's own words, without the text that the SDK adds.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }

func (a *answer) Unwrap() error { return a.err }

// code returns AWS's code of an error, or "" if the error is not from AWS.
func code(err error) string {
	if e := smithy.APIError(nil); errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// message returns AWS's text of an error, or "" if the error is not from AWS.
func message(err error) string {
	if e := smithy.APIError(nil); errors.As(err, &e) {
		return e.ErrorMessage()
	}
	return ""
}

// trouble describes a kind of AWS error, and what the user does next.
type trouble struct {
	codes  []string
	text   string // which its message contains
	kind   fault.Kind
	remedy string
}

var troubles = []trouble{
	{codes: []string{"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
		"ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "MissingAuthenticationToken", "OptInRequired"},
		kind:   fault.Config,
		remedy: `renew the credentials, which are wrong or expired, for example with "aws configure" or "aws sso login"`},
	{codes: []string{"TooManyRequestsException", "Throttling", "ThrottlingException"},
		remedy: "wait a minute and run it again: AWS throttles the calls of this account, after several attempts"},
	{codes: []string{"CodeStorageExceededException"},
		kind: fault.Config, remedy: "delete functions, or request a higher quota of function storage in Service Quotas"},
	{codes: []string{"LimitExceeded", "LimitExceededException"},
		kind: fault.Config, remedy: "delete roles (a quota of IAM), or give an existing role with --role"},
	{codes: []string{"InvalidParameterValueException"}, text: "UnreservedConcurrentExecution",
		kind: fault.Config, remedy: "request a higher quota of concurrent executions in Service Quotas, or set a smaller --concurrency; " +
			"AWS reserves some for other functions"},
	{text: "MemorySize",
		kind: fault.Config, remedy: "set a smaller --memory, or request a higher quota: new accounts get at most 3008 MB"},
	{codes: []string{"InvalidParameterValueException"}, text: "role",
		kind: fault.Config, remedy: "create a suitable role with --create-role: it must trust lambda.amazonaws.com, and in a VPC have " +
			"AWSLambdaVPCAccessExecutionRole"},
	{codes: []string{"ResourceConflictException"},
		remedy: "run it again: another process changes the function at the same time"},
	{codes: []string{"DeleteConflict"},
		kind: fault.Config, remedy: "remove what siafu did not create from the role, such as an inline policy, and run it again"},
	{codes: []string{"InvalidParameterValueException", "ValidationException", "ValidationError", "MalformedPolicyDocument"},
		kind: fault.Config, remedy: "correct the flag named in the message"},
	{codes: []string{"ServiceException", "ServiceFailure", "InternalFailure", "ServiceUnavailable"},
		remedy: "run it again later: AWS failed, after several attempts"},
}

// namedAction matches the missing permission in an AWS error. The permission may differ from the
// name of the call: creating a function also needs permission to pass its role.
var namedAction = regexp.MustCompile(`not authorized to perform: ([a-z0-9]+:[A-Za-z]+)`)

// explain returns the error of a call in AWS's words, with its kind and what the user does next.
func explain(action string, err error) error {
	if errors.Is(err, context.Canceled) {
		return &fault.Error{Op: "lambda", Kind: fault.Stopped, Detail: "interrupted", Remedy: "run it again", Err: &answer{action, err}}
	}
	e := smithy.APIError(nil)
	if !errors.As(err, &e) {
		return &fault.Error{Op: "lambda", Kind: fault.IO, Detail: action, Remedy: "check the network and the region", Err: err}
	}
	f := &fault.Error{Op: "lambda", Detail: action, Err: &answer{e.ErrorCode() + ": " + e.ErrorMessage(), err}}
	if slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}, e.ErrorCode()) {
		if m := namedAction.FindStringSubmatch(e.ErrorMessage()); m != nil {
			action = m[1]
		}
		f.Kind, f.Remedy = fault.Config, "ask the administrator of the account to allow "+action
		return f
	}
	for _, t := range troubles {
		if (t.codes == nil || slices.Contains(t.codes, e.ErrorCode())) &&
			strings.Contains(strings.ToLower(e.ErrorMessage()), strings.ToLower(t.text)) {
			f.Kind, f.Remedy = t.kind, t.remedy
			break
		}
	}
	return f
}

func denied(err error) bool {
	return slices.Contains([]string{"AccessDenied", "AccessDeniedException"}, code(err))
}

// uncertain reports whether a failed call may have had an effect: there was no response, or the
// service failed.
func uncertain(err error) bool {
	if err == nil || code(err) == "" {
		return err != nil
	}
	r := (*http.ResponseError)(nil)
	return errors.As(err, &r) && r.HTTPStatusCode() >= 500
}
