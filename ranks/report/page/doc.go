// Package page is the frame of siafu's HTML pages: a file that opens from disk, without
// a network, with charts, tables that sort and a legend that hides lines. Whatever text
// is put into it is shown as text; a policy in the page (Content-Security-Policy) lets
// nothing run but its own script, and nothing be loaded.
package page
