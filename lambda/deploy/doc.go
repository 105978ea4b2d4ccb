// Package deploy creates the function for tensor work in an AWS account, reports its
// state, and removes it: the function, and its role if requested.
//
// All created resources have the tag siafu=NAME. The package changes and deletes only
// resources with that tag. A deployment describes the desired function; only differences
// are changed, so a second deployment makes no changing call. If a first deployment fails,
// the resources that it created are removed. The package never invokes the function.
package deploy
