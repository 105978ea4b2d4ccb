package deploy

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"siafu/internal/fault"
	siafulambda "siafu/lambda"
)

// Deploy makes the function that the options describe, or changes the one that is there
// where it differs, and waits until it can be invoked. Where it fails, or ctx ends,
// it removes what it has made, unless told to keep it.
func Deploy(ctx context.Context, o Options, w io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	path, err := siafulambda.Executable(o.File, o.Arch)
	if err != nil {
		return err
	}
	packed, err := Pack(path, o.Arch)
	if err != nil {
		return err
	}
	c, err := open(ctx, w, o.DryRun)
	if err != nil {
		return err
	}
	return c.deploy(ctx, o, packed)
}

// deployment is one call of Deploy.
type deployment struct {
	*control
	o            Options
	code         Code
	freshRole    bool // Lambda may not know the role or its policies yet
	madeRole     bool // or may have
	madeFunction bool // or may have
}

func (c *control) deploy(ctx context.Context, o Options, packed Code) error {
	d := &deployment{control: c, o: o, code: packed}
	if err := d.converge(ctx); err != nil {
		return d.undo(ctx, err)
	}
	d.report()
	return nil
}

// vpc reports whether the function is to be in one.
func (d *deployment) vpc() bool { return len(d.o.Subnets) > 0 }

// converge makes the function what the options describe.
func (d *deployment) converge(ctx context.Context) error {
	there, err := d.look(ctx, d.o.Name)
	if err != nil {
		return err
	}
	if there == nil {
		there, err = d.create(ctx)
	} else {
		there, err = d.update(ctx, there)
	}
	if err != nil {
		return err
	}
	return d.reserve(ctx, there)
}

// create makes the function. One that has come into being since it was looked for, as by
// a call whose answer was lost, is updated.
func (d *deployment) create(ctx context.Context) (*lambda.GetFunctionOutput, error) {
	role, err := d.roleARN(ctx, nil)
	if err != nil {
		return nil, err
	}
	in := &lambda.CreateFunctionInput{
		FunctionName: &d.o.Name, Description: aws.String("tensor tasks of siafu"),
		Code: &types.FunctionCode{ZipFile: d.code.Zip}, Architectures: d.architectures(), PackageType: types.PackageTypeZip,
		Runtime: types.RuntimeProvidedal2023, Handler: aws.String(handler),
		MemorySize: d.memory(), Timeout: d.timeout(), Role: &role,
		Tags: map[string]string{tag: d.o.Name},
	}
	if d.vpc() {
		in.VpcConfig = d.network()
	}
	err = d.patiently(ctx, func() error {
		_, err := change(ctx, d.control, "lambda:CreateFunction", in, d.lambda.CreateFunction)
		return err
	})
	if code(err) == "ResourceConflictException" {
		there, err := d.look(ctx, d.o.Name)
		if err != nil || there == nil {
			return nil, errors.Join(fault.New(fault.Runtime, "lambda", "", "the function %s is created and deleted repeatedly", d.o.Name).Then("run it again"), err)
		}
		return d.update(ctx, there)
	}
	d.madeFunction = err == nil || uncertain(err)
	if err != nil || d.dry {
		return &lambda.GetFunctionOutput{}, err
	}
	return d.settled(ctx, d.o.Name)
}

// handler is the file of the zip, by the name that the runtime starts.
const handler = "bootstrap"

func (d *deployment) architectures() []types.Architecture {
	if d.o.Arch == "arm64" {
		return []types.Architecture{types.ArchitectureArm64}
	}
	return []types.Architecture{types.ArchitectureX8664}
}

func (d *deployment) memory() *int32 { return aws.Int32(int32(d.o.Memory)) }

func (d *deployment) timeout() *int32 { return aws.Int32(int32(d.o.Timeout / time.Second)) }

// network returns the function's VPC. Empty lists take a function out of the one it is in.
func (d *deployment) network() *types.VpcConfig {
	return &types.VpcConfig{SubnetIds: append([]string{}, d.o.Subnets...), SecurityGroupIds: append([]string{}, d.o.SecurityGroups...)}
}

// roleARN returns the role of the function, made if it is to be siafu's. A function that is
// there keeps its role where no other one is asked for.
func (d *deployment) roleARN(ctx context.Context, there *types.FunctionConfiguration) (string, error) {
	switch {
	case d.o.Role != "":
		return d.o.Role, nil
	case d.o.CreateRole:
		return d.role(ctx)
	case there == nil:
		return "", refuse("give the ARN of a role that Lambda may assume with --role, or create one with --create-role", "the function %s is new and needs a role", d.o.Name)
	}
	if d.hasOwn(there) {
		return d.role(ctx)
	}
	return aws.ToString(there.Role), nil
}

// hasOwn reports whether a function has the role that siafu makes for it.
func (d *deployment) hasOwn(there *types.FunctionConfiguration) bool {
	name, err := roleName(d.region, d.o.Name)
	return err == nil && strings.HasSuffix(aws.ToString(there.Role), "/"+name)
}

// patiently makes a call that names a role. Lambda takes some seconds to know one that
// has just been made, and says until then that it cannot take it on.
func (d *deployment) patiently(ctx context.Context, call func() error) error {
	deadline := time.Now().Add(d.waits.role)
	for {
		err := call()
		unknown := code(err) == "InvalidParameterValueException" && strings.Contains(message(err), "role")
		if !unknown || !d.freshRole || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return explain("the wait for a new role", ctx.Err())
		case <-time.After(2 * d.waits.step):
		}
	}
}

// update changes what differs. Lambda refuses a change before the last one is done.
func (d *deployment) update(ctx context.Context, there *lambda.GetFunctionOutput) (*lambda.GetFunctionOutput, error) {
	if err := d.owned(there, d.o.Name); err != nil {
		return nil, err
	}
	f := there.Configuration
	if f.State == types.StateFailed {
		return nil, fault.New(fault.Config, "lambda", "", "the function %s failed: %s", d.o.Name, aws.ToString(f.StateReason)).
			Then(`remove it, with "siafu lambda remove --name %s", and deploy it again`, d.o.Name)
	}
	if f.State == types.StatePending || f.LastUpdateStatus == types.LastUpdateStatusInProgress {
		var err error
		if there, err = d.settled(ctx, d.o.Name); err != nil {
			return nil, err
		}
		f = there.Configuration
	}
	role, err := d.roleARN(ctx, f)
	if err != nil {
		return nil, err
	}
	failed := f.LastUpdateStatus == types.LastUpdateStatusFailed // of what it tells, some may not be so
	configured, coded := d.configured(f, role) && !failed, d.coded(f) && !failed
	if configured && coded {
		return there, nil
	}
	if !configured {
		if err := d.configure(ctx, role); err != nil {
			return nil, err
		}
	}
	if !coded {
		_, err := change(ctx, d.control, "lambda:UpdateFunctionCode", &lambda.UpdateFunctionCodeInput{
			FunctionName: &d.o.Name, ZipFile: d.code.Zip, Architectures: d.architectures(),
		}, d.lambda.UpdateFunctionCode)
		if err != nil {
			return nil, err
		}
	}
	if d.dry {
		return there, nil
	}
	return d.settled(ctx, d.o.Name)
}

// configured reports whether a function is what the options describe, but for its code.
func (d *deployment) configured(f *types.FunctionConfiguration, role string) bool {
	v := f.VpcConfig
	if v == nil {
		v = &types.VpcConfigResponse{}
	}
	return aws.ToInt32(f.MemorySize) == *d.memory() && aws.ToInt32(f.Timeout) == *d.timeout() &&
		aws.ToString(f.Role) == role && f.Runtime == types.RuntimeProvidedal2023 && aws.ToString(f.Handler) == handler &&
		same(v.SubnetIds, d.o.Subnets) && same(v.SecurityGroupIds, d.o.SecurityGroups)
}

// same reports whether two lists have the same members.
func same(a, b []string) bool {
	sorted := func(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }
	return slices.Equal(sorted(a), sorted(b))
}

// coded reports whether a function has the code, for the architecture.
func (d *deployment) coded(f *types.FunctionConfiguration) bool {
	return aws.ToString(f.CodeSha256) == d.code.SHA256 && slices.Equal(f.Architectures, d.architectures())
}

// configure changes all of a function but its code, and waits until that is done.
func (d *deployment) configure(ctx context.Context, role string) error {
	err := d.patiently(ctx, func() error {
		_, err := change(ctx, d.control, "lambda:UpdateFunctionConfiguration", &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &d.o.Name, Runtime: types.RuntimeProvidedal2023, Handler: aws.String(handler),
			MemorySize: d.memory(), Timeout: d.timeout(), Role: &role, VpcConfig: d.network(),
		}, d.lambda.UpdateFunctionConfiguration)
		return err
	})
	if err != nil || d.dry {
		return err
	}
	_, err = d.settled(ctx, d.o.Name)
	return err
}

// reserve sets the function's concurrency.
func (d *deployment) reserve(ctx context.Context, there *lambda.GetFunctionOutput) error {
	has := reserved(there)
	var err error
	switch {
	case d.o.Concurrency == 0 && has != nil:
		_, err = change(ctx, d.control, "lambda:DeleteFunctionConcurrency", &lambda.DeleteFunctionConcurrencyInput{FunctionName: &d.o.Name}, d.lambda.DeleteFunctionConcurrency)
	case d.o.Concurrency > 0 && (has == nil || int(*has) != d.o.Concurrency):
		_, err = change(ctx, d.control, "lambda:PutFunctionConcurrency", &lambda.PutFunctionConcurrencyInput{
			FunctionName: &d.o.Name, ReservedConcurrentExecutions: aws.Int32(int32(d.o.Concurrency)),
		}, d.lambda.PutFunctionConcurrency)
	}
	return err
}

// reserved returns a function's reserved concurrency, nil where there is none.
func reserved(there *lambda.GetFunctionOutput) *int32 {
	if there.Concurrency == nil {
		return nil
	}
	return there.Concurrency.ReservedConcurrentExecutions
}

// undo removes what a deployment has made that fails because of cause.
func (d *deployment) undo(ctx context.Context, cause error) error {
	switch {
	case d.dry || d.changes == 0:
		return cause
	case !d.madeFunction && !d.madeRole:
		d.say("failed after changing existing resources: deploy again to finish")
		return cause
	case d.o.Keep:
		d.say("failed and keeps the created resources: %s; remove them with siafu lambda remove --name %s", d.made(), d.o.Name)
		return cause
	}
	d.say("failed and removes the created resources: %s", d.made())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.waits.undo)
	defer cancel()
	if err := d.takeBack(ctx); err != nil {
		d.say("could not remove everything: %v", err)
		d.say("remove the rest with siafu lambda remove --name %s", d.o.Name)
	}
	return cause
}

// made names what a deployment has made.
func (d *deployment) made() string {
	var list []string
	if d.madeFunction {
		list = append(list, "function "+d.o.Name)
	}
	if name, err := roleName(d.region, d.o.Name); d.madeRole && err == nil {
		list = append(list, "role "+name)
	}
	return strings.Join(list, ", ")
}

// takeBack removes the function and the role, as far as they are this deployment's. A
// function that was there before keeps a role that it has got meanwhile.
func (d *deployment) takeBack(ctx context.Context) error {
	deleted := false
	if d.madeFunction {
		var err error
		if deleted, err = d.removeFunction(ctx, d.o.Name); err != nil {
			return err
		}
	} else if there, err := d.look(ctx, d.o.Name); err != nil {
		return err
	} else if there != nil && d.hasOwn(there.Configuration) {
		d.say("keeps the role, which the function now uses: deploy again to finish")
		return nil
	}
	if !d.madeRole {
		return nil
	}
	return d.dropRole(ctx, d.o.Name, deleted)
}

// report says what there is now, what it costs, and how to be rid of it.
func (d *deployment) report() {
	if d.dry {
		d.say("dry run: only read calls were made, %d changing calls were skipped, and nothing was changed", d.changes)
		return
	}
	if d.changes == 0 {
		d.say("nothing to change: the function already has the requested settings")
	}
	d.say("function=%s region=%s arch=%s memory_mb=%d timeout=%s code_bytes=%d code_sha256=%s changes=%d",
		d.o.Name, d.region, d.o.Arch, d.o.Memory, d.o.Timeout, len(d.code.Zip), d.code.SHA256, d.changes)
	d.say("an idle function costs only the storage of its code, which is free up to the account's quota; invocations and their logs are charged")
	d.say("use it with siafu train DATA --tensor lambda --lambda aws --lambda-function %s; remove it with siafu lambda remove --name %s", d.o.Name, d.o.Name)
}
