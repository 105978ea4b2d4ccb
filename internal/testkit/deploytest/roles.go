package deploytest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Role is a role of the account.
type Role struct {
	Tags     map[string]string
	Policies []string
	unknown  int // calls of Lambda until it accepts the role
}

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
	text := "<Role><Path>/</Path><RoleName>" + name + "</RoleName><RoleId>AROA</RoleId><Arn>" + ARN(name) +
		"</Arn><CreateDate>2026-01-02T03:04:05Z</CreateDate><Tags>"
	for key, value := range r.Tags {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(value))
		text += "<member><Key>" + key + "</Key><Value>" + b.String() + "</Value></member>"
	}
	return text + "</Tags></Role>"
}

// ARN returns the ARN of a role.
func ARN(role string) string { return "arn:aws:iam::" + Account + ":role/" + role }
