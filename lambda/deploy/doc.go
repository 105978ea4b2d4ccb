// Package deploy creates the function for tensor work in an AWS account, reports its state, and
// removes it. On request it also creates and removes the function's role.
//
// All created resources have the tag siafu=NAME. The package changes and deletes only resources
// with that tag. A deployment describes the desired function. Only settings that differ are
// changed, so a second deployment makes no changing call. If a first deployment fails, the
// resources that it created are removed. The package never invokes the function.
// Package invoke does, in the same account: that of invoke.LoadAccount.
package deploy
