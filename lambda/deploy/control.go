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
	"siafu/lambda/account"
)

// tag marks what siafu has made. Its value is the function's name.
const tag = "siafu"

// control asks the control APIs of an account: Lambda's in one region, and IAM's.
// Calls that were throttled are made again by the SDK's retryer.
type control struct {
	lambda  *lambda.Client
	iam     *iam.Client
	region  string
	out     io.Writer
	dry     bool // print changing calls instead of making them
	changes int  // calls that have changed something, or would have
	waits   waits
}

// waits bound what is waited for.
type waits struct {
	step  time.Duration // between two looks, at first
	ready time.Duration // for a function to be made or updated
	role  time.Duration // for Lambda to know a new role
	undo  time.Duration // for the removal of what a failed deployment has made
}

// usual are the waits of AWS itself: a function in a VPC takes up to some minutes.
var usual = waits{step: time.Second, ready: 10 * time.Minute, role: time.Minute, undo: time.Minute}

// open finds the account.
func open(ctx context.Context, out io.Writer, dry bool) (*control, error) {
	c, err := account.Load(ctx)
	if ctx.Err() != nil {
		return nil, explain("the search for credentials", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return newControl(c, out, dry), nil
}

func newControl(c aws.Config, out io.Writer, dry bool) *control {
	return &control{lambda: lambda.NewFromConfig(c), iam: iam.NewFromConfig(c), region: c.Region, out: out, dry: dry, waits: usual}
}

// say prints a line.
func (c *control) say(format string, args ...any) { fmt.Fprintf(c.out, "lambda "+format+"\n", args...) }

// read makes a call, which is named as the right to make it is.
func read[I, O, F any](ctx context.Context, action string, in *I, call func(context.Context, *I, ...func(*F)) (*O, error)) (*O, error) {
	out, err := call(ctx, in)
	if err != nil {
		return nil, explain(action, err)
	}
	return out, nil
}

// change makes a call that changes something, and says so. A dry run prints it with its
// parameters instead, and gets an empty answer.
func change[I, O, F any](ctx context.Context, c *control, action string, in *I, call func(context.Context, *I, ...func(*F)) (*O, error)) (*O, error) {
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

// parameters are those of a call as JSON, without what is not set, and with the size of
// code in place of it. None of siafu's calls has a secret.
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

func shorten(all map[string]any) {
	for key, value := range all {
		switch v := value.(type) {
		case nil:
			delete(all, key)
		case bool:
			if !v {
				delete(all, key)
			}
		case string:
			if v == "" {
				delete(all, key)
			} else if key == "ZipFile" {
				all[key] = fmt.Sprintf("<%d characters of base64>", len(v))
			}
		case map[string]any:
			shorten(v)
		}
	}
}

// look is what there is of a function, nil where there is none.
func (c *control) look(ctx context.Context, name string) (*lambda.GetFunctionOutput, error) {
	there, err := read(ctx, "lambda:GetFunction", &lambda.GetFunctionInput{FunctionName: &name}, c.lambda.GetFunction)
	if code(err) == "ResourceNotFoundException" {
		return nil, nil
	}
	return there, err
}

// owned refuses a function that siafu has not made.
func (c *control) owned(there *lambda.GetFunctionOutput, name string) error {
	if there.Tags[tag] == name {
		return nil
	}
	if e := there.TagsError; e != nil {
		return fault.New(fault.Config, "lambda", "", "the tags of the function %s cannot be read: %s: %s", name, aws.ToString(e.ErrorCode), aws.ToString(e.Message)).
			Then("allow lambda:ListTags: siafu recognises its own resources by their tag")
	}
	return fault.New(fault.Config, "lambda", "", "siafu did not create the function %s in %s: it lacks the tag %s=%s", name, c.region, tag, name).
		Then("choose another --name: siafu changes and deletes only its own resources")
}

// settled waits until a function has been made, and is up to date.
func (c *control) settled(ctx context.Context, name string) (*lambda.GetFunctionOutput, error) {
	in := &lambda.GetFunctionInput{FunctionName: &name}
	step := func(least, most *time.Duration) { *least, *most = c.waits.step, 5*c.waits.step }
	err := lambda.NewFunctionActiveV2Waiter(c.lambda, func(o *lambda.FunctionActiveV2WaiterOptions) {
		step(&o.MinDelay, &o.MaxDelay)
		o.Retryable = unlessIdle(o.Retryable)
	}).Wait(ctx, in, c.waits.ready)
	if err != nil {
		return nil, c.unsettled(ctx, name, err)
	}
	there, err := lambda.NewFunctionUpdatedV2Waiter(c.lambda, func(o *lambda.FunctionUpdatedV2WaiterOptions) {
		step(&o.MinDelay, &o.MaxDelay)
	}).WaitForOutput(ctx, in, c.waits.ready)
	if err != nil {
		return nil, c.unsettled(ctx, name, err)
	}
	return there, nil
}

type activeCheck = func(context.Context, *lambda.GetFunctionInput, *lambda.GetFunctionOutput, error) (bool, error)

// unlessIdle ends a wait for a function that Lambda has put aside, as nobody has invoked
// it for weeks: the next invocation makes it active.
func unlessIdle(again activeCheck) activeCheck {
	return func(ctx context.Context, in *lambda.GetFunctionInput, out *lambda.GetFunctionOutput, err error) (bool, error) {
		if err == nil && out.Configuration != nil && out.Configuration.State == types.StateInactive {
			return false, nil
		}
		return again(ctx, in, out, err)
	}
}

// unsettled is why a function is not ready, in Lambda's words where it has some.
func (c *control) unsettled(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || code(err) != "" {
		return explain("lambda:GetFunction", err)
	}
	there, lookErr := c.look(ctx, name)
	if lookErr != nil || there == nil {
		return errors.Join(fault.New(fault.Runtime, "lambda", "", "the function %s is not ready: %v", name, err), lookErr)
	}
	f := there.Configuration
	return fault.New(fault.Runtime, "lambda", "", "the function %s is not ready: state %s %s, last update %s %s: %v",
		name, f.State, aws.ToString(f.StateReason), f.LastUpdateStatus, aws.ToString(f.LastUpdateStatusReason), err).
		Then(`correct what AWS reports and deploy again, or check again with "siafu lambda status --name %s"`, name)
}
