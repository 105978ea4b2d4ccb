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

// Deploy creates the function that the options describe. If the function exists, Deploy changes the
// settings that differ. It returns when the function can be invoked. If it fails or ctx ends, it
// removes the resources that it created, unless Options.Keep is set.
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

type deployment struct {
	*control
	o               Options
	code            Code
	freshRole       bool // Lambda may not know the new role or its policies yet
	createdRole     bool // or the call may have succeeded without a response
	createdFunction bool // or the call may have succeeded without a response
}

func (c *control) deploy(ctx context.Context, o Options, packed Code) error {
	d := &deployment{control: c, o: o, code: packed}
	if err := d.converge(ctx); err != nil {
		return d.undo(ctx, err)
	}
	d.report()
	return nil
}

func (d *deployment) vpc() bool { return len(d.o.Subnets) > 0 }

// converge creates or updates the function according to the options.
func (d *deployment) converge(ctx context.Context) error {
	found, err := d.getFunction(ctx, d.o.Name)
	if err != nil {
		return err
	}
	if found == nil {
		found, err = d.create(ctx)
	} else {
		found, err = d.update(ctx, found)
	}
	if err != nil {
		return err
	}
	return d.reserve(ctx, found)
}

// create creates the function. If the function exists by now, create updates it: another process
// created it, or the response to an earlier call was lost.
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
	err = d.retryNewRole(ctx, func() error {
		_, err := change(ctx, d.control, "lambda:CreateFunction", in, d.lambda.CreateFunction)
		return err
	})
	if code(err) == "ResourceConflictException" {
		found, err := d.getFunction(ctx, d.o.Name)
		if err != nil || found == nil {
			return nil, errors.Join(fault.New(fault.Runtime, "lambda", "", "the function %s is created and deleted repeatedly", d.o.Name).
				Then("run it again"), err)
		}
		return d.update(ctx, found)
	}
	d.createdFunction = err == nil || uncertain(err)
	if err != nil || d.dry {
		return &lambda.GetFunctionOutput{}, err
	}
	return d.awaitReady(ctx, d.o.Name)
}

// handler is the name of the executable in the zip, which the runtime starts.
const handler = "bootstrap"

func (d *deployment) architectures() []types.Architecture {
	if d.o.Arch == "arm64" {
		return []types.Architecture{types.ArchitectureArm64}
	}
	return []types.Architecture{types.ArchitectureX8664}
}

func (d *deployment) memory() *int32 { return aws.Int32(int32(d.o.Memory)) }

func (d *deployment) timeout() *int32 { return aws.Int32(int32(d.o.Timeout / time.Second)) }

// network returns the VPC settings. Empty lists remove the function from its VPC.
func (d *deployment) network() *types.VpcConfig {
	return &types.VpcConfig{SubnetIds: append([]string{}, d.o.Subnets...), SecurityGroupIds: append([]string{}, d.o.SecurityGroups...)}
}

// roleARN returns the ARN of the function's role. It creates the role for --create-role. Without
// --role and --create-role an existing function keeps its role.
func (d *deployment) roleARN(ctx context.Context, found *types.FunctionConfiguration) (string, error) {
	switch {
	case d.o.Role != "":
		return d.o.Role, nil
	case d.o.CreateRole:
		return d.role(ctx)
	case found == nil:
		return "", refuse("give the ARN of a role that Lambda may assume with --role, or create one with --create-role",
			"the function %s is new and needs a role", d.o.Name)
	}
	if d.hasOwn(found) {
		return d.role(ctx)
	}
	return aws.ToString(found.Role), nil
}

func (d *deployment) hasOwn(found *types.FunctionConfiguration) bool {
	name, err := roleName(d.region, d.o.Name)
	return err == nil && strings.HasSuffix(aws.ToString(found.Role), "/"+name)
}

// retryNewRole repeats a call that names a role while Lambda does not accept the role. A new role
// is unknown to Lambda for some seconds.
func (d *deployment) retryNewRole(ctx context.Context, call func() error) error {
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

// update changes the settings that differ. Lambda rejects a change while another one is in
// progress, so update waits after each change.
func (d *deployment) update(ctx context.Context, found *lambda.GetFunctionOutput) (*lambda.GetFunctionOutput, error) {
	if err := d.owned(found, d.o.Name); err != nil {
		return nil, err
	}
	f := found.Configuration
	if f.State == types.StateFailed {
		return nil, fault.New(fault.Config, "lambda", "", "the function %s failed: %s", d.o.Name, aws.ToString(f.StateReason)).
			Then(`remove it, with "siafu lambda remove --name %s", and deploy it again`, d.o.Name)
	}
	if f.State == types.StatePending || f.LastUpdateStatus == types.LastUpdateStatusInProgress {
		var err error
		if found, err = d.awaitReady(ctx, d.o.Name); err != nil {
			return nil, err
		}
		f = found.Configuration
	}
	role, err := d.roleARN(ctx, f)
	if err != nil {
		return nil, err
	}
	failed := f.LastUpdateStatus == types.LastUpdateStatusFailed // the reported settings may not be in effect
	configured, coded := d.configured(f, role) && !failed, d.coded(f) && !failed
	if configured && coded {
		return found, nil
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
		return found, nil
	}
	return d.awaitReady(ctx, d.o.Name)
}

// configured reports whether all settings except the code match the options.
func (d *deployment) configured(f *types.FunctionConfiguration, role string) bool {
	v := f.VpcConfig
	if v == nil {
		v = &types.VpcConfigResponse{}
	}
	return aws.ToInt32(f.MemorySize) == *d.memory() && aws.ToInt32(f.Timeout) == *d.timeout() &&
		aws.ToString(f.Role) == role && f.Runtime == types.RuntimeProvidedal2023 && aws.ToString(f.Handler) == handler &&
		sameMembers(v.SubnetIds, d.o.Subnets) && sameMembers(v.SecurityGroupIds, d.o.SecurityGroups)
}

func sameMembers(a, b []string) bool {
	sorted := func(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }
	return slices.Equal(sorted(a), sorted(b))
}

// coded reports whether the function has this code and this architecture.
func (d *deployment) coded(f *types.FunctionConfiguration) bool {
	return aws.ToString(f.CodeSha256) == d.code.SHA256 && slices.Equal(f.Architectures, d.architectures())
}

// configure changes all settings except the code, and waits until the change is in effect.
func (d *deployment) configure(ctx context.Context, role string) error {
	err := d.retryNewRole(ctx, func() error {
		_, err := change(ctx, d.control, "lambda:UpdateFunctionConfiguration", &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &d.o.Name, Runtime: types.RuntimeProvidedal2023, Handler: aws.String(handler),
			MemorySize: d.memory(), Timeout: d.timeout(), Role: &role, VpcConfig: d.network(),
		}, d.lambda.UpdateFunctionConfiguration)
		return err
	})
	if err != nil || d.dry {
		return err
	}
	_, err = d.awaitReady(ctx, d.o.Name)
	return err
}

func (d *deployment) reserve(ctx context.Context, found *lambda.GetFunctionOutput) error {
	has := reserved(found)
	var err error
	switch {
	case d.o.Concurrency == 0 && has != nil:
		_, err = change(ctx, d.control, "lambda:DeleteFunctionConcurrency", &lambda.DeleteFunctionConcurrencyInput{FunctionName: &d.o.Name},
			d.lambda.DeleteFunctionConcurrency)
	case d.o.Concurrency > 0 && (has == nil || int(*has) != d.o.Concurrency):
		_, err = change(ctx, d.control, "lambda:PutFunctionConcurrency", &lambda.PutFunctionConcurrencyInput{
			FunctionName: &d.o.Name, ReservedConcurrentExecutions: aws.Int32(int32(d.o.Concurrency)),
		}, d.lambda.PutFunctionConcurrency)
	}
	return err
}

// reserved returns the reserved concurrency of a function, or nil if none is reserved.
func reserved(found *lambda.GetFunctionOutput) *int32 {
	if found.Concurrency == nil {
		return nil
	}
	return found.Concurrency.ReservedConcurrentExecutions
}

// undo removes the resources that a failed deployment created, and returns cause.
func (d *deployment) undo(ctx context.Context, cause error) error {
	switch {
	case d.dry || d.changes == 0:
		return cause
	case !d.createdFunction && !d.createdRole:
		d.say("failed after changing existing resources: deploy again to finish")
		return cause
	case d.o.Keep:
		d.say("failed and keeps the created resources: %s; remove them with siafu lambda remove --name %s", d.created(), d.o.Name)
		return cause
	}
	d.say("failed and removes the created resources: %s", d.created())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.waits.undo)
	defer cancel()
	if err := d.removeCreated(ctx); err != nil {
		d.say("could not remove everything: %v", err)
		d.say("remove the rest with siafu lambda remove --name %s", d.o.Name)
	}
	return cause
}

func (d *deployment) created() string {
	var list []string
	if d.createdFunction {
		list = append(list, "function "+d.o.Name)
	}
	if name, err := roleName(d.region, d.o.Name); d.createdRole && err == nil {
		list = append(list, "role "+name)
	}
	return strings.Join(list, ", ")
}

// removeCreated removes the function and the role that this deployment created. An older function
// that now uses the created role keeps it.
func (d *deployment) removeCreated(ctx context.Context) error {
	deleted := false
	if d.createdFunction {
		var err error
		if deleted, err = d.removeFunction(ctx, d.o.Name); err != nil {
			return err
		}
	} else if found, err := d.getFunction(ctx, d.o.Name); err != nil {
		return err
	} else if found != nil && d.hasOwn(found.Configuration) {
		d.say("keeps the role, which the function now uses: deploy again to finish")
		return nil
	}
	if !d.createdRole {
		return nil
	}
	return d.dropRole(ctx, d.o.Name, deleted)
}

// report prints the state of the function, its cost, and how to use and remove it.
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
	d.say("an idle function costs only the storage of its code, which is free up to the account's quota; " +
		"invocations and their logs are charged")
	d.say("use it with siafu train DATA --tensor lambda --lambda aws:function=%s; remove it with siafu lambda remove --name %s",
		d.o.Name, d.o.Name)
}
