package deploytest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Function is a function of the account.
type Function struct {
	Config
	Tags     map[string]string
	Reserved *int
	Zip      []byte
	looks    int    // calls of GetFunction until the current change is complete
	fail     string // reason why it then becomes Failed
}

// Config is the configuration of a function, in requests and responses.
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

// VPC is the network of a function.
type VPC struct {
	SubnetIds, SecurityGroupIds []string
	VpcId                       string
}

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
		return fn.describe(), nil
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
	if r := f.checkRole(in.Role, in.VpcConfig); r != nil {
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

func (f *Fake) checkRole(arn string, v *VPC) *Refusal {
	_, name, _ := strings.Cut(arn, ":role/")
	r := f.Roles[name]
	if r == nil || r.unknown > 0 {
		if r != nil {
			r.unknown--
		}
		return invalid("The role defined for the function cannot be assumed by Lambda.")
	}
	if v != nil && len(v.SubnetIds) > 0 &&
		!slices.ContainsFunc(r.Policies, func(p string) bool { return strings.HasSuffix(p, "/AWSLambdaVPCAccessExecutionRole") }) {
		return invalid("The provided execution role does not have permissions to call CreateNetworkInterface on EC2")
	}
	return nil
}

// setCode sets the code to a zip, which must contain one executable named bootstrap.
func (fn *Function) setCode(text []byte) *Refusal {
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode().Perm() != 0o755 {
		return invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
	}
	sum := sha256.Sum256(text)
	fn.Zip, fn.CodeSize, fn.CodeSha256 = text, len(text), base64.StdEncoding.EncodeToString(sum[:])
	return nil
}

// describe returns the response of GetFunction. Each call brings the current change closer to its
// end.
func (fn *Function) describe() any {
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

// update begins a change of configuration or code, unless another change is in progress.
func (f *Fake) update(fn *Function, c call) (any, *Refusal) {
	if fn.looks > 0 || fn.LastUpdateStatus == "InProgress" || fn.State == "Pending" {
		return nil, &Refusal{http.StatusConflict, "ResourceConflictException",
			"The operation cannot be performed at this time. An update is in progress for resource: " + fn.FunctionArn}
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
		if r := f.checkRole(next.Role, next.VpcConfig); r != nil {
			return nil, r
		}
		fn.Config = next
	}
	fn.LastUpdateStatus, fn.looks = "InProgress", f.Looks
	return fn.Config, nil
}
