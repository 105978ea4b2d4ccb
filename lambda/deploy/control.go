package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"siafu/internal/fault"
	"siafu/lambda/invoke"
)

// tag is the key of the tag on all resources that siafu creates. Its value is the function's name.
const tag = "siafu"

// control calls the control APIs of an AWS account: Lambda in one region, and IAM. The SDK's
// retryer repeats throttled calls.
type control struct {
	lambda  *lambda.Client
	iam     *iam.Client
	region  string
	out     io.Writer
	dry     bool // print changing calls instead of making them
	changes int  // calls that changed something, or would have without dry
	waits   waits
}

type waits struct {
	step  time.Duration // first interval between two polls
	ready time.Duration // until a function is created or updated, at most
	role  time.Duration // until Lambda accepts a new role, at most
	undo  time.Duration // for removing the resources of a failed deployment, at most
}

// awsWaits are the waits for AWS itself. A function in a VPC takes some minutes.
var awsWaits = waits{step: time.Second, ready: 10 * time.Minute, role: time.Minute, undo: time.Minute}

// open returns the control of the account that the SDK's configuration selects.
func open(ctx context.Context, out io.Writer, dry bool) (*control, error) {
	c, err := invoke.LoadAccount(ctx)
	if ctx.Err() != nil {
		return nil, explain("loading the credentials", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return newControl(c, out, dry), nil
}

func newControl(c aws.Config, out io.Writer, dry bool) *control {
	return &control{lambda: lambda.NewFromConfig(c), iam: iam.NewFromConfig(c), region: c.Region, out: out, dry: dry, waits: awsWaits}
}

func (c *control) say(format string, args ...any) { fmt.Fprintf(c.out, "lambda "+format+"\n", args...) }

// read makes a call. action is the name of the call and of the permission for it.
func read[I, O, F any](ctx context.Context, action string, in *I, call func(context.Context, *I, ...func(*F)) (*O, error)) (*O, error) {
	out, err := call(ctx, in)
	if err != nil {
		return nil, explain(action, err)
	}
	return out, nil
}

// change makes a call that changes something, and prints its name. A dry run prints the call with
// its parameters instead, and returns an empty response.
func change[I, O, F any](ctx context.Context, c *control, action string, in *I, call func(context.Context, *I,
	...func(*F)) (*O, error)) (*O, error) {
	if c.dry {
		c.changes++
		text, err := parameters(in)
		c.say("would call %s %s", action, text)
		return new(O), err
	}
	c.say("calls %s", action)
	out, err := read(ctx, action, in, call)
	if err == nil || uncertain(err) {
		c.changes++
	}
	return out, err
}

// parameters returns the parameters of a call as JSON. It omits unset parameters, and replaces the
// code by its size. None of siafu's calls contains a secret.
func parameters(in any) (string, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	shorten(all)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(all)
	return string(bytes.TrimSpace(out.Bytes())), err
}

// shorten removes unset parameters, and replaces the code by its size.
func shorten(all map[string]any) {
	for key, value := range all {
		switch v := value.(type) {
		case map[string]any:
			shorten(v)
		case string:
			if key == "ZipFile" {
				all[key] = fmt.Sprintf("<%d characters of base64>", len(v))
			}
		}
		if value == nil || value == false || value == "" {
			delete(all, key)
		}
	}
}

// getFunction returns a function, or nil if it does not exist.
func (c *control) getFunction(ctx context.Context, name string) (*lambda.GetFunctionOutput, error) {
	found, err := read(ctx, "lambda:GetFunction", &lambda.GetFunctionInput{FunctionName: &name}, c.lambda.GetFunction)
	if code(err) == "ResourceNotFoundException" {
		return nil, nil
	}
	return found, err
}

// owned returns an error if siafu did not create the function.
func (c *control) owned(found *lambda.GetFunctionOutput, name string) error {
	if found.Tags[tag] == name {
		return nil
	}
	if e := found.TagsError; e != nil {
		return fault.New(fault.Config, "lambda", "", "the tags of the function %s cannot be read: %s: %s", name,
			aws.ToString(e.ErrorCode), aws.ToString(e.Message)).
			Then("allow lambda:ListTags: siafu recognises its own resources by their tag")
	}
	return fault.New(fault.Config, "lambda", "",
		"siafu did not create the function %s in %s: it lacks the tag %s=%s", name, c.region, tag, name).
		Then("choose another --name: siafu changes and deletes only its own resources")
}

// awaitReady waits until a function is active and its last update is complete.
func (c *control) awaitReady(ctx context.Context, name string) (*lambda.GetFunctionOutput, error) {
	in := &lambda.GetFunctionInput{FunctionName: &name}
	poll := func(least, most *time.Duration) { *least, *most = c.waits.step, 5*c.waits.step }
	err := lambda.NewFunctionActiveV2Waiter(c.lambda, func(o *lambda.FunctionActiveV2WaiterOptions) {
		poll(&o.MinDelay, &o.MaxDelay)
		o.Retryable = unlessIdle(o.Retryable)
	}).Wait(ctx, in, c.waits.ready)
	if err != nil {
		return nil, c.notReady(ctx, name, err)
	}
	found, err := lambda.NewFunctionUpdatedV2Waiter(c.lambda, func(o *lambda.FunctionUpdatedV2WaiterOptions) {
		poll(&o.MinDelay, &o.MaxDelay)
	}).WaitForOutput(ctx, in, c.waits.ready)
	if err != nil {
		return nil, c.notReady(ctx, name, err)
	}
	return found, nil
}

type activeCheck = func(context.Context, *lambda.GetFunctionInput, *lambda.GetFunctionOutput, error) (bool, error)

// unlessIdle ends the wait for a function that is inactive because nobody has invoked it for weeks.
// The next invocation makes it active.
func unlessIdle(again activeCheck) activeCheck {
	return func(ctx context.Context, in *lambda.GetFunctionInput, out *lambda.GetFunctionOutput, err error) (bool, error) {
		if err == nil && out.Configuration != nil && out.Configuration.State == types.StateInactive {
			return false, nil
		}
		return again(ctx, in, out, err)
	}
}

// notReady returns the error for a function that is not ready, with Lambda's reasons if there are
// any.
func (c *control) notReady(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || code(err) != "" {
		return explain("lambda:GetFunction", err)
	}
	found, lookErr := c.getFunction(ctx, name)
	if lookErr != nil || found == nil {
		return errors.Join(fault.New(fault.Runtime, "lambda", "", "the function %s is not ready: %v", name, err), lookErr)
	}
	f := found.Configuration
	return fault.New(fault.Runtime, "lambda", "", "the function %s is not ready: state %s %s, last update %s %s: %v",
		name, f.State, aws.ToString(f.StateReason), f.LastUpdateStatus, aws.ToString(f.LastUpdateStatusReason), err).
		Then(`correct what AWS reports and deploy again, or check again with "siafu lambda status --name %s"`, name)
}
